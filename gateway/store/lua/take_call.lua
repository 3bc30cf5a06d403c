-- Take one call of a rate that several processes share, if there is one; see `access.gcra`.
--
-- KEYS[1]  the moment at which the rate is whole again, epoch microseconds; absent: it is whole
-- ARGV[1]  now by the caller's clock, epoch microseconds
-- ARGV[2]  after how long one call comes back, microseconds
-- ARGV[3]  how many calls there are in all
-- answers  how long to wait for one, microseconds; 0: it was taken
--
-- What is no number, or no string (MGET says so, GET would fail), counts as absent.
local now, interval, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local most = interval * count
local stored = tonumber(redis.call("MGET", KEYS[1])[1] or "") or 0
-- No number at all ("nan") is not even itself.
if stored ~= stored then stored = 0 end
local after = math.min(math.max(stored, now), now + most) + interval
if after - now > most then return after - now - most end
redis.call("SET", KEYS[1], string.format("%.0f", after), "PX", math.ceil((after - now) / 1000))
return 0
