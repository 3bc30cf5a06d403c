-- Append entries of one writer to the audit trail, each once, and keep beside it what follows.
--
-- KEYS[1]  the trail, a stream
-- KEYS[2]  the number of the writer's last entry that is in it
-- KEYS[3]  the notable entries, a stream
-- KEYS[4…] the counts of days, hashes; all of one slot
-- ARGV[1]  about how many entries the trail keeps
-- ARGV[2]  about how many notable ones are kept
-- ARGV[3]  for how many ms the number of the last entry is known
-- ARGV[4]  for how many ms the counts of a day are kept
-- ARGV[5…] for each entry: its number, higher than that of the one before, its name, its text, "1"
--          for a notable one or "", and the key (4 …) and field it is counted in, or "" and ""
-- answers  how many were appended; the others are there already, by a call whose answer was lost
--
-- What is no stream or hash beside the trail is replaced. One that is no trail is left alone, and
-- Redis's error is the answer.

-- Before Redis 7, no write may otherwise follow one that asks for the time.
if redis.replicate_commands then redis.replicate_commands() end
for i = 3, #KEYS do
  local kind = redis.call("TYPE", KEYS[i]).ok
  if kind ~= "none" and kind ~= (i == 3 and "stream" or "hash") then redis.call("DEL", KEYS[i]) end
end

local last = tonumber(redis.call("MGET", KEYS[2])[1] or "") or 0
local count, fault = 0, nil
for i = 5, #ARGV, 6 do
  local number = tonumber(ARGV[i])
  if number > last then
    local body = {"*", "id", ARGV[i + 1], "entry", ARGV[i + 2]}
    local place = redis.pcall("XADD", KEYS[1], "MAXLEN", "~", ARGV[1], unpack(body))
    if type(place) == "table" then
      fault = place
      break
    end
    last, count = number, count + 1
    if ARGV[i + 3] ~= "" then
      redis.call("XADD", KEYS[3], "MAXLEN", "~", ARGV[2], unpack(body))
    end
    if ARGV[i + 4] ~= "" then
      local day, field = KEYS[tonumber(ARGV[i + 4])], ARGV[i + 5]
      -- What is no number is begun anew.
      if type(redis.pcall("HINCRBY", day, field, 1)) == "table" then
        redis.call("HSET", day, field, 1)
      end
      redis.call("PEXPIRE", day, ARGV[4])
    end
  end
end
if count > 0 then redis.call("SET", KEYS[2], last, "PX", ARGV[3]) end
return fault or count
