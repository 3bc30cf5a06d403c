-- What wrk sends and how it judges the answers. Arguments: a file of framed requests, what a right
-- answer's body contains, then the address of each thread. Run by wrk.py.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end

local requests = {}
local next_one = 0
failed = 0

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  while true do
    local length = file:read("*l")
    if not length then break end
    table.insert(requests, file:read(tonumber(length)))
  end
  file:close()
  proof = arguments[2]
  local host, port = arguments[2 + number]:match("^(.*):(%d+)$")
  wrk.thread.addr = wrk.lookup(host, port)[1]
  -- Threads begin at different places.
  next_one = (number - 1) * math.floor(#requests / 2)
end

function request()
  next_one = next_one % #requests + 1
  return requests[next_one]
end

function response(status, headers, body)
  if not body:find(proof, 1, true) then failed = failed + 1 end
end

function done(summary, latency)
  local wrong = 0
  for _, thread in ipairs(threads) do wrong = wrong + thread:get("failed") end
  local broken = summary.errors
  local lost = broken.connect + broken.read + broken.write + broken.timeout
  io.write(string.format(
    '\n{"answered": %d, "right": %d, "failed": %d, "micros": %d, "p50": %d, "p99": %d}\n',
    summary.requests, summary.requests - wrong, wrong + lost,
    summary.duration, latency:percentile(50), latency:percentile(99)))
end
