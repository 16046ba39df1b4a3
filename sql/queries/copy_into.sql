-- copy_into: takes rows that the client has already put into the binary COPY format.
-- params: none
COPY {schema}.{table} ({columns}) FROM STDIN (FORMAT binary, ENCODING 'UTF8')
