-- Take a member out of an index unless it was entered anew since the caller looked.
--
-- KEYS[1]  the index, a sorted set
-- ARGV[1]  the member
-- ARGV[2]  the score the caller saw
-- answers  1 when it was taken out, else 0
local score = redis.call("ZSCORE", KEYS[1], ARGV[1])
if score and tonumber(score) <= tonumber(ARGV[2]) then
  return redis.call("ZREM", KEYS[1], ARGV[1])
end
return 0
