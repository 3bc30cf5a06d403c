-- Change one document and its entries in the indexes beside it, if the document is as the caller
-- read it.
--
-- KEYS[1]  the document, a hash; its field "version" is another with every change, never used again
-- KEYS[2]  an index, a sorted set, in the same slot
-- KEYS[3]  a list of documents, or left out: a sorted set of one score in the same slot, which has
--          the member for as long as the document exists; what is no sorted set is replaced. With
--          "drop-if-unindexed" instead: what is deleted with the document, of any type
-- KEYS[4]  another document that must be there, or left out; in a slot of its own
-- KEYS[5]  with it: its index, a sorted set in that slot, which gets the member too
-- ARGV[1]  the version the caller read: "" for an absent document, "*" for any present one
-- ARGV[2]  the version to give it
-- ARGV[3]  the member of the index, and of the list
-- ARGV[4]  its new score; "" leaves the entry as it is, "-" removes it
-- ARGV[5]  "drop" deletes the document, "drop-if-unindexed" only while the index is empty, else ""
-- ARGV[6]  its score in KEYS[5], or ""
-- ARGV[7]  how many fields are set
-- ARGV[8…] the fields set (name, value, name, value …), then the names of the fields deleted
-- answers  1, or, where nothing was changed: 0, the document was not as expected; -1, KEYS[4] is
--          not there
local version = redis.call("HGET", KEYS[1], "version")
if version == ARGV[2] then return 1 end  -- the same change once more: its first answer was lost
if ARGV[1] == "*" then
  if not version then return 0 end
elseif (version or "") ~= ARGV[1] then
  return 0
end
if KEYS[4] then
  if not redis.call("HGET", KEYS[4], "version") then return -1 end
  redis.call("ZADD", KEYS[5], ARGV[6], ARGV[3])
end
if ARGV[5] == "drop-if-unindexed" then
  if redis.call("ZCARD", KEYS[2]) > 0 then return 0 end
  if KEYS[3] then redis.call("DEL", KEYS[3]) end
end

if ARGV[4] == "-" then
  redis.call("ZREM", KEYS[2], ARGV[3])
elseif ARGV[4] ~= "" then
  redis.call("ZADD", KEYS[2], ARGV[4], ARGV[3])
end

if KEYS[3] and redis.call("TYPE", KEYS[3]).ok ~= "zset" then redis.call("DEL", KEYS[3]) end
if ARGV[5] ~= "" then
  redis.call("DEL", KEYS[1])
  if KEYS[3] then redis.call("ZREM", KEYS[3], ARGV[3]) end
elseif #ARGV > 7 then
  local first_deleted = 8 + 2 * tonumber(ARGV[7])
  for i = 8, first_deleted - 1, 2 do
    redis.call("HSET", KEYS[1], ARGV[i], ARGV[i + 1])
  end
  for i = first_deleted, #ARGV do
    redis.call("HDEL", KEYS[1], ARGV[i])
  end
  redis.call("HSET", KEYS[1], "version", ARGV[2])
  if KEYS[3] then redis.call("ZADD", KEYS[3], 0, ARGV[3]) end
end
return 1
