-- Append entries of one writer to the audit trail, each once, and keep beside it what follows.
--
-- KEYS[1]  the trail, a stream
-- KEYS[2]  the number of the writer's last entry that is in it
-- KEYS[3]  the notable entries, a stream
-- KEYS[4]  the conflicts, a stream
-- KEYS[5…] the counts of days, hashes; all of one slot
-- ARGV[1]  about how many entries the trail keeps
-- ARGV[2]  about how many each stream beside it keeps
-- ARGV[3]  for how many ms the number of the last entry is known
-- ARGV[4]  for how many ms the counts of a day are kept
-- ARGV[5…] for each entry: its number, higher than that of the one before, its name, its text, the
--          key (3 …) of the stream that it is kept in too, or "", and the key (5 …) and field it is
--          counted in, or "" and ""
-- answers  how many were appended; the others are there already, by a call whose answer was lost
--
-- Redis takes nothing back of a script that fails. So the number is stored first, and goes back to
-- what was appended where the trail takes no more: it is left alone, and Redis's error is the
-- answer. What is beside it fails nothing: what takes no entry or count is begun anew, once.

-- Before Redis 7, no write may otherwise follow one that asks for the time.
if redis.replicate_commands then redis.replicate_commands() end

local function is_done(...)
  local answer = redis.pcall(...)
  return not (type(answer) == "table" and answer.err)
end
local function keep_in(stream, body)
  local command = {"XADD", stream, "MAXLEN", "~", ARGV[2], unpack(body)}
  if is_done(unpack(command)) then return end
  redis.pcall("DEL", stream)
  redis.pcall(unpack(command))
end
local function count_in(day, field)
  if is_done("HINCRBY", day, field, 1) or is_done("HSET", day, field, 1) then return end
  redis.pcall("DEL", day)
  redis.pcall("HSET", day, field, 1)
end

-- MGET says of what is no string that it is absent. Lua takes "inf" and "1e9" for numbers.
local stored = redis.call("MGET", KEYS[2])[1] or ""
local before = stored:find("^%d+$") and #stored <= 15 and tonumber(stored) or 0
local last = tonumber(ARGV[#ARGV - 5])
if last <= before then return 0 end
redis.call("SET", KEYS[2], last, "PX", ARGV[3])

local reached, count = before, 0
for i = 5, #ARGV, 6 do
  local number = tonumber(ARGV[i])
  if number > before then
    local body = {"*", "id", ARGV[i + 1], "entry", ARGV[i + 2]}
    local place = redis.pcall("XADD", KEYS[1], "MAXLEN", "~", ARGV[1], unpack(body))
    if type(place) == "table" then
      redis.call("SET", KEYS[2], reached, "PX", ARGV[3])
      return place
    end
    reached, count = number, count + 1
    if ARGV[i + 3] ~= "" then
      keep_in(KEYS[tonumber(ARGV[i + 3])], body)
    end
    if ARGV[i + 4] ~= "" then
      local day = KEYS[tonumber(ARGV[i + 4])]
      count_in(day, ARGV[i + 5])
      redis.pcall("PEXPIRE", day, ARGV[4])
    end
  end
end
return count
