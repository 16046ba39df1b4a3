-- settings: sets each name to the value beside it, for the session.
-- params: $1 names, $2 values
SELECT set_config(setting.name, setting.value, false) FROM unnest($1::text[], $2::text[]) AS setting(name, value);
