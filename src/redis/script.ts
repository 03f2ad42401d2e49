/**
 * The one script. It runs a batch of items in the order in which they were issued, each under `pcall`,
 * so that one item's failure (WRONGTYPE, OOM) neither undoes nor hides another's.
 *
 * No `#!lua` header: with one, Redis refuses the whole script when out of memory, releases included.
 *
 * KEYS: marker, hold, then lock and record of each item (the marker and hold again for `hello`, `trust`…; what
 * `codec.ts` says for `sync` and `present`).
 * ARGV: per item seven fields: op, token, ms, record ms, attempt, flag, content.
 * Returns {boot, held (0/1), answer…}; an answer is a flat list that starts with its status.
 *
 * lock    `1 <token> <attempt> <c|n><u|k>`   attempt that its claim wrote (0: healed), counted or not, unknown or known
 * record  `o<attempt>,<floor>` open · `d<attempt>,<floor>,<content>` done · `v<applied>,<pending>` versions of a resource;
 *         the letter is the format
 * marker  `1 <boot> <run id> <longest lock life> <memory lost before, epoch ms> <a|e> <voter name>`; a: appendfsync was always
 */
export const SCRIPT = `
local call = redis.call
local marker = call('GET', KEYS[1])
local boot = marker and string.match(marker, '^1 (%S+) ') or ''
local hold = call('GET', KEYS[2])

local function int(n) return string.format('%d', n) end

local function lockAt(key)
  local v = call('GET', key)
  if not v then return nil end
  local token, attempt, counted, unknown = string.match(v, '^1 (%S+) (%d+) ([cn])([uk])$')
  if not token then error('FORMAT unknown lock format') end
  return { token = token, attempt = tonumber(attempt), counted = counted == 'c', unknown = unknown == 'u' }
end

local function setLock(key, token, attempt, counted, unknown, ms)
  call('SET', key, '1 ' .. token .. ' ' .. int(attempt) .. ' ' .. (counted and 'c' or 'n') .. (unknown and 'u' or 'k'), 'PX', ms)
end

local function recordAt(key)
  local v = call('GET', key)
  if not v then return { attempt = 0, floor = 0 } end
  local letter, attempt, floor, rest = string.match(v, '^([od])(%d+),(%d+)(.*)$')
  if not letter or (letter == 'o' and rest ~= '') then error('FORMAT unknown record format') end
  return { done = letter == 'd', attempt = tonumber(attempt), floor = tonumber(floor), content = string.sub(rest, 2) }
end

local function setOpen(key, attempt, floor, ms)
  if ms then call('SET', key, 'o' .. int(attempt) .. ',' .. int(floor), 'PX', ms)
  else call('SET', key, 'o' .. int(attempt) .. ',' .. int(floor), 'KEEPTTL') end
end

local function setDone(key, attempt, floor, content, ms)
  local v = 'd' .. int(attempt) .. ',' .. int(floor) .. ',' .. content
  if ms then call('SET', key, v, 'PX', ms) else call('SET', key, v, 'KEEPTTL') end
end

local function done(key, rec) return { 'done', rec.attempt, rec.floor, rec.content, call('PTTL', key) } end
local function held(key, lock, rec) return { 'held', lock.token, lock.unknown and 1 or 0, call('PTTL', key), rec.floor } end
local function yes(counted, rec) return { 'ok', counted and 1 or 0, rec.attempt, rec.floor } end

local ops = {}

function ops.claim(l, r, token, ms, recordMs)
  if boot == '' then return { 'no-marker' } end
  local rec = recordAt(r)
  if rec.done then return done(r, rec) end
  local lock = lockAt(l)
  if lock and lock.token ~= token then return held(l, lock, rec) end
  if lock then return yes(lock.counted and not hold, rec) end
  rec.attempt = rec.attempt + 1
  setLock(l, token, rec.attempt, not hold, false, ms)
  setOpen(r, rec.attempt, rec.floor, recordMs)
  return yes(not hold, rec)
end

function ops.confirm(l, r, token, _, recordMs, attempt)
  local rec = recordAt(r)
  if rec.done then return done(r, rec) end
  local lock = lockAt(l)
  if not lock or lock.token ~= token then return { 'lost', rec.floor } end
  rec.attempt = math.max(rec.attempt, attempt)
  setOpen(r, rec.attempt, rec.floor, recordMs)
  return yes(lock.counted and not hold, rec)
end

function ops.extend(l, r, token, ms, _, _, unknown)
  local rec = recordAt(r)
  local lock = lockAt(l)
  if not lock or lock.token ~= token then return { 'lost', rec.floor } end
  setLock(l, token, lock.attempt, lock.counted, unknown or lock.unknown, ms)
  return yes(lock.counted and not hold, rec)
end

function ops.heal(l, r, token, ms, recordMs, attempt)
  local rec = recordAt(r)
  if rec.done then return done(r, rec) end
  local lock = lockAt(l)
  if lock and lock.token ~= token then return held(l, lock, rec) end
  if lock then return yes(lock.counted and not hold, rec) end
  rec.attempt = math.max(rec.attempt, attempt)
  setLock(l, token, 0, false, false, ms)
  setOpen(r, rec.attempt, rec.floor, recordMs)
  return yes(false, rec)
end

local function finish(l, r, token, recordMs, attempt, content)
  local rec = recordAt(r)
  local lock = lockAt(l)
  local answer
  if attempt <= rec.floor then answer = { 'forgotten', rec.floor }
  elseif rec.done then
    if attempt > rec.attempt then
      rec.attempt = attempt
      setDone(r, attempt, rec.floor, rec.content)
    end
    answer = yes(not hold, rec)
  else
    rec.attempt = math.max(rec.attempt, attempt)
    setDone(r, rec.attempt, rec.floor, content, recordMs)
    answer = yes(not hold, rec)
  end
  if lock and lock.token == token then call('DEL', l) end
  return answer
end

function ops.complete(l, r, token, _, recordMs, attempt, _, content) return finish(l, r, token, recordMs, attempt, content) end
ops.repair = ops.complete

function ops.release(l, r, token, _, _, _, takeBack)
  local rec = recordAt(r)
  local lock = lockAt(l)
  if not lock or lock.token ~= token then return { 'lost', rec.floor } end
  call('DEL', l)
  if takeBack and lock.counted and not rec.done and lock.attempt > 0 and rec.attempt == lock.attempt then
    rec.attempt = rec.attempt - 1
    if rec.attempt == 0 and rec.floor == 0 then call('DEL', r) else setOpen(r, rec.attempt, rec.floor) end
  end
  return yes(lock.counted and not hold, rec)
end

function ops.peek(l, r)
  local rec = recordAt(r)
  if rec.done then return done(r, rec) end
  local lock = lockAt(l)
  if lock then return held(l, lock, rec) end
  return { 'free', hold and 0 or 1, rec.attempt, rec.floor }
end

local function versionsAt(key)
  local v = call('GET', key)
  if not v then return '', '' end
  local applied, pending = string.match(v, '^v(%w*),(%w*)$')
  if not applied then error('FORMAT unknown record format') end
  return applied, pending
end

function ops.order(_, r, instead, _, recordMs, _, _, change)
  if boot == '' then return { 'no-marker' } end
  local applied, pending = versionsAt(r)
  local newApplied, newPending = string.match(change, '^(%w*),(%w*)$')
  if change ~= ',' or instead ~= '' then
    if newApplied < applied then newApplied = applied end
    if instead == '' and newPending < pending or instead ~= '' and pending ~= instead then newPending = pending end
    call('SET', r, 'v' .. newApplied .. ',' .. newPending, 'PX', math.max(recordMs, call('PTTL', r)))
  end
  return { 'versions', hold and 0 or 1, applied, pending, call('PTTL', r) }
end

function ops.read(_, r)
  local v = call('GET', r)
  if v and string.sub(v, 1, 1) == 'v' then
    local applied, pending = versionsAt(r)
    return { 'versions', hold and 0 or 1, applied, pending, call('PTTL', r) }
  end
  local rec = recordAt(r)
  return { 'record', rec.done and 1 or 0, rec.attempt, rec.floor, rec.content or '', call('PTTL', r) }
end

function ops.look(l)
  local lock = lockAt(l) or { token = '' }
  return { 'lock', lock.token, lock.unknown and 1 or 0, call('PTTL', l) }
end

function ops.learn(_, r, _, floor, recordMs, attempt, isDone, content)
  local rec = recordAt(r)
  rec.floor = math.max(rec.floor, floor)
  local known = rec.done and rec.attempt > rec.floor
  local new = not known and isDone and attempt > rec.floor
  rec.attempt = math.max(rec.attempt, attempt)
  if known then setDone(r, rec.attempt, rec.floor, rec.content)
  elseif new then setDone(r, rec.attempt, rec.floor, content, recordMs)
  elseif rec.attempt > 0 then setOpen(r, rec.attempt, rec.floor, math.max(recordMs, call('PTTL', r))) end
  return yes(not hold, rec)
end

function ops.sync(key, _, token, ms)
  if boot == '' then return { 'no-marker' } end
  local owner = call('GET', key)
  if owner and owner ~= token then return { 'held', owner, 0, call('PTTL', key), 0 } end
  call('SET', key, token, 'PX', ms)
  return { 'ok', 0, 0, 0 }
end

local function info(section, pattern)
  local ok, text = pcall(call, 'INFO', section)
  return ok and type(text) == 'string' and string.match(text, pattern) or nil
end

-- Of a cluster, the slot that the marker is in: the server may have keys of other lanes.
local function isEmpty()
  local sharded, slot = pcall(call, 'CLUSTER', 'KEYSLOT', KEYS[1])
  if sharded and type(slot) == 'number' then return call('CLUSTER', 'COUNTKEYSINSLOT', slot) == 0 end
  return call('DBSIZE') == 0
end

local function holdForLocks(longest)
  hold = 'locks'
  call('SET', KEYS[2], hold, 'PX', math.ceil(longest * 1.01 + 1002))
end

local function setMarker(new)
  if new ~= marker then call('SET', KEYS[1], new) end
  marker = new
end

function ops.hello(_, _, nonce, ms, fsync, _, _, name)
  local run = info('server', 'run_id:(%w+)') or '-'
  local known, life, lost, kept, called = string.match(marker or '', '^1 %S+ (%S+) (%d+) (%d+) ([ae]) (.*)$')
  local longest = math.max(ms, tonumber(life or 0))
  if known and (known == run or run == '-' or known == '-') then
    if run == '-' then run = known end
    if fsync > 0 then kept = fsync == 1 and 'a' or 'e' end
  else
    local looked, empty = pcall(isEmpty)
    local why = 'records'
    if known and info('persistence', 'aof_enabled:(%d)') == '1' then why = 'locks'
    elseif not known and looked and empty == true then why = 'empty' end
    if why ~= 'locks' then
      hold = why
      call('SET', KEYS[2], hold)
    elseif (not hold and kept ~= 'a') or hold == 'locks' then holdForLocks(longest) end
    boot = nonce
    kept = fsync == 1 and 'a' or 'e'
  end
  setMarker('1 ' .. boot .. ' ' .. run .. ' ' .. int(longest) .. ' ' .. (lost or 0) .. ' ' .. kept .. ' ' .. (called or name))
  return { 'hello', hold or '', hold and call('PTTL', KEYS[2]) or 0, lost or '0' }
end

function ops.stepped(_, _, known, _, _, _, _, nonce)
  if boot == '' or known ~= boot then return { 'lost', 0 } end
  boot = nonce
  if not hold or hold == 'locks' then holdForLocks(tonumber(string.match(marker, '^1 %S+ %S+ (%d+)'))) end
  setMarker((string.gsub(marker, '^1 %S+', '1 ' .. nonce)))
  return { 'hello', hold, call('PTTL', KEYS[2]), string.match(marker, '^1 %S+ %S+ %d+ (%d+)') }
end

function ops.relearn(_, _, known, _, _, _, _, nonce)
  if boot == '' or known ~= boot or hold == 'records' or hold == 'empty' then return { 'lost', 0 } end
  boot = nonce
  hold = 'records'
  call('SET', KEYS[2], hold)
  setMarker((string.gsub(marker, '^1 %S+', '1 ' .. nonce)))
  return { 'hello', hold, -1, string.match(marker, '^1 %S+ %S+ %d+ (%d+)') }
end

function ops.present(gateways, unready, own, ms)
  if boot == '' then return { 'no-marker' } end
  local before = call('GET', gateways) or ''
  if own ~= '' then call('SET', gateways, own, 'PX', ms) end
  if hold then call('SET', unready, hold, 'PX', ms) else call('DEL', unready) end
  return { 'present', before }
end

function ops.admit(_, _, known, _, _, _, _, lost)
  if known ~= boot or not hold or hold == 'locks' then return { 'lost', 0 } end
  call('DEL', KEYS[2])
  hold = false
  if lost ~= '0' then
    setMarker((string.gsub(marker, '^(1 %S+ %S+ %d+) %d+ ', '%1 ' .. lost .. ' ')))
  end
  return { 'hello', '', 0, lost }
end

function ops.trust(_, _, known)
  if known ~= boot or hold ~= 'empty' then return { 'lost', 0 } end
  call('DEL', KEYS[2])
  hold = false
  return { 'hello', '', 0, '0' }
end

local out = { '', 0 }
for i = 0, #ARGV / 7 - 1 do
  local a = i * 7
  local ok, answer = pcall(ops[ARGV[a + 1]], KEYS[i * 2 + 3], KEYS[i * 2 + 4], ARGV[a + 2],
    tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5]), ARGV[a + 6] == '1', ARGV[a + 7])
  if not ok then answer = { 'error', type(answer) == 'table' and answer.err or tostring(answer) } end
  out[i + 3] = answer
end
out[1] = boot
out[2] = hold and 1 or 0
return out
`;
