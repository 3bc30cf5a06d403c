-- Note when credentials of one client were last used, while it has them.
--
-- KEYS[1]  the client's document; its field "client" spells the ids of its credentials
-- KEYS[2]  the uses, a hash in the same slot: credential id, epoch ms
-- ARGV[1]  now by the caller's clock, epoch ms
-- ARGV[2…] credential ids and times (epoch ms) in turn; an earlier time than the noted one is none
-- answers  1, or 0: there is no such client, and nothing is kept of it
--
-- What is no hash, and a time that is no number or more than a minute ahead of now, are replaced.
-- Credentials that are gone are forgotten.
local client = redis.pcall("HGET", KEYS[1], "client")
local is_known, kind = type(client) == "string", redis.call("TYPE", KEYS[2]).ok
if not is_known or (kind ~= "none" and kind ~= "hash") then redis.call("DEL", KEYS[2]) end
if not is_known then return 0 end

local function is_there(credential) return client:find(credential, 1, true) ~= nil end
for _, credential in ipairs(redis.call("HKEYS", KEYS[2])) do
  if not is_there(credential) then redis.call("HDEL", KEYS[2], credential) end
end
local furthest = tonumber(ARGV[1]) + 60000
for i = 2, #ARGV, 2 do
  local noted = redis.call("HGET", KEYS[2], ARGV[i]) or ""
  local at = noted:find("^%d+$") and tonumber(noted) or 0
  local is_kept = at >= tonumber(ARGV[i + 1]) and at <= furthest
  if is_there(ARGV[i]) and not is_kept then
    redis.call("HSET", KEYS[2], ARGV[i], ARGV[i + 1])
  end
end
return 1
