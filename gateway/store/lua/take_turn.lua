-- Take a turn that nobody has taken within its lifetime.
--
-- KEYS[1]  the turn, a string that ends by itself
-- ARGV[1]  after how many ms it ends
-- answers  1 when the caller has it, else 0
--
-- What is no string, or would never end, was not set by a gateway, and is replaced: else nobody
-- would have the turn any more.
if redis.call("SET", KEYS[1], "1", "NX", "PX", ARGV[1]) then return 1 end
if redis.call("TYPE", KEYS[1]).ok == "string" and redis.call("PTTL", KEYS[1]) >= 0 then return 0 end
redis.call("SET", KEYS[1], "1", "PX", ARGV[1])
return 1
