-- Takes back 0001_initial.sql: what it made, by name, and nothing else that lives in the schema.
-- RESTRICT on purpose: an object of somebody else's that hangs on ours stops the downgrade.

DROP TRIGGER memories_inserted ON {schema}.memories;
DROP TRIGGER memories_updated ON {schema}.memories;
DROP TRIGGER memories_deleted ON {schema}.memories;

DROP VIEW
    {schema}.memory_list,
    {schema}.scope_tree;

DROP FUNCTION
    {schema}.append_turns,
    {schema}.approximate_vectors,
    {schema}.associate,
    {schema}.claim_pending,
    {schema}.count_pending,
    {schema}.count_vectors,
    {schema}.dissociate,
    {schema}.elsewhere,
    {schema}.ensure_scope,
    {schema}.ensure_scopes,
    {schema}.escaped,
    {schema}.find_scopes,
    {schema}.graph_route,
    {schema}.hops,
    {schema}.index_memories,
    {schema}.is_live,
    {schema}.lexical_route,
    {schema}.lexical_statistics,
    {schema}.lineage,
    {schema}.memory_of,
    {schema}.most_salient_in_layer,
    {schema}.move_records,
    {schema}.neighbours,
    {schema}.newest_in_layer,
    {schema}.note_language,
    {schema}.prepare_load,
    {schema}.profile_in_layer,
    {schema}.profile_route,
    {schema}.recent_route,
    {schema}.record_of,
    {schema}.reindex_memory,
    {schema}.reinforce,
    {schema}.remember,
    {schema}.salient_route,
    {schema}.scope_at,
    {schema}.scope_path,
    {schema}.scope_text,
    {schema}.scopes_below,
    {schema}.search,
    {schema}.seen_record,
    {schema}.store_vectors,
    {schema}.term_weight,
    {schema}.unembedded,
    {schema}.unindex_memory,
    {schema}.vector_route,
    {schema}.window_end;

DROP TABLE
    {schema}.turns,
    {schema}.associations,
    {schema}.usage,
    {schema}.embedding_leases,
    {schema}.embeddings,
    {schema}.models,
    {schema}.postings,
    {schema}.memories,
    {schema}.scopes;
