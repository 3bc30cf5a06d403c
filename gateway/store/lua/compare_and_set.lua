-- Change several values at once, if each is as the caller read it; keep the index of them.
--
-- KEYS[1]  the index, a sorted set: the key of each value, score = when it expires, epoch ms
-- KEYS[2…] the values, strings, in the same slot
-- ARGV[1]  now by the caller's clock, epoch ms
-- ARGV[2…] for each value three arguments: what the caller read ("" for an absent one), what it
--          becomes ("" removes it), and after how many ms it expires
-- answers  1, or 0: one was not as expected and nothing was changed
--
-- What is no string, and an index that is no sorted set, count as absent and are replaced. MGET
-- says so of a value, as it did to the caller; GET would fail.
for i = 2, #KEYS do
  if (redis.call("MGET", KEYS[i])[1] or "") ~= ARGV[3 * i - 4] then return 0 end
end

local now = tonumber(ARGV[1])
if redis.call("TYPE", KEYS[1]).ok ~= "zset" then redis.call("DEL", KEYS[1]) end
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now)
for i = 2, #KEYS do
  local value, lifetime = ARGV[3 * i - 3], tonumber(ARGV[3 * i - 2])
  if value == "" then
    redis.call("DEL", KEYS[i])
    redis.call("ZREM", KEYS[1], KEYS[i])
  else
    redis.call("SET", KEYS[i], value, "PX", lifetime)
    redis.call("ZADD", KEYS[1], now + lifetime, KEYS[i])
    -- The index lives as long as the last of its values.
    if redis.call("PTTL", KEYS[1]) < lifetime then redis.call("PEXPIRE", KEYS[1], lifetime) end
  end
end
return 1
