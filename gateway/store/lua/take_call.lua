-- Take one call of a rate that several processes share, if there is one; see `access.gcra`.
--
-- KEYS[1]  the moment at which the rate is whole again, epoch microseconds; absent: it is whole
-- KEYS[2]  if it is there: a hash of which one field must have a text, else nothing is taken
-- ARGV[1]  now by the caller's clock, epoch microseconds
-- ARGV[2]  after how long one call comes back, microseconds
-- ARGV[3]  how many calls there are in all; with KEYS[2] also 0: any number, none is taken
-- ARGV[4]  the field of KEYS[2]
-- ARGV[5]  its text
-- answers  how long to wait for one, microseconds; 0: it was taken; -1: another text
--
-- What is no number, or no string (MGET says so, GET would fail), counts as absent.
if KEYS[2] then
  if redis.call("HMGET", KEYS[2], ARGV[4])[1] ~= ARGV[5] then return -1 end
  if ARGV[3] == "0" then return 0 end
end
local now, interval, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local most = interval * count
local stored = tonumber(redis.call("MGET", KEYS[1])[1] or "") or 0
-- No number at all ("nan") is not even itself.
if stored ~= stored then stored = 0 end
local after = math.min(math.max(stored, now), now + most) + interval
if after - now > most then return after - now - most end
redis.call("SET", KEYS[1], string.format("%.0f", after), "PX", math.ceil((after - now) / 1000))
return 0
