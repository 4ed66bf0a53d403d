-- The word count of Kafka Streams, in SQL: reads lines of text and counts each word.
--
--     connect-standalone config/connect-standalone.properties config/connect-streams.sql
--     printf 'all streams lead to kafka\nhello kafka streams\n' | connectctl produce streams-plaintext-input
--     connectctl sql "SELECT * FROM counts EMIT CHANGES;"
--
-- Statements that ran at an earlier start are skipped. docs/streams.md lists all statements.

CREATE STREAM lines (line STRING)
    WITH (kafka_topic = 'streams-plaintext-input', value_format = 'KAFKA', partitions = 1);

-- Java's split, which the demo uses, drops empty strings at the end.
CREATE STREAM words AS
    SELECT explode(regexp_split_to_array(regexp_replace(lower(line), '\\W+$', ''), '\\W+')) AS word FROM lines EMIT CHANGES;

CREATE TABLE counts
    WITH (kafka_topic = 'streams-wordcount-output', key_format = 'KAFKA', value_format = 'KAFKA') AS
    SELECT word, count(*) AS n FROM words GROUP BY word EMIT CHANGES;
