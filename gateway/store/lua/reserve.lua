-- Reserve a place among those who take one of a limited number, behind all who came before.
--
-- KEYS[1]  the reservations, a sorted set: name, score = epoch ms, a later one for each that comes
-- ARGV[1]  the name
-- ARGV[2]  now by the caller's clock, epoch ms
-- ARGV[3]  after how many ms a reservation ends that nobody gave back
-- answers  all names from the first to the last
--
-- What is no sorted set is replaced.
local now, lifetime = tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call("TYPE", KEYS[1]).ok ~= "zset" then redis.call("DEL", KEYS[1]) end
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now - lifetime)
local last = redis.call("ZRANGE", KEYS[1], -1, -1, "WITHSCORES")
local score = now
if last[2] and tonumber(last[2]) >= now then score = tonumber(last[2]) + 1 end
redis.call("ZADD", KEYS[1], score, ARGV[1])
redis.call("PEXPIRE", KEYS[1], lifetime)
return redis.call("ZRANGE", KEYS[1], 0, -1)
