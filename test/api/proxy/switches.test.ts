import t from 'tap'
import type { IncomingHttpHeaders } from 'node:http'
import {
  bodySwitches,
  resolveMemoryAccess,
  resolveVerbatim,
  headerSwitches,
  querySwitches,
  type MemoryAccess,
  type ChannelSwitches,
} from '#api/proxy/switches.ts'
import { permissionsByMode, type KeyMode } from '#shared/access/key.ts'

const suffixes: KeyMode[] = ['on', 'read', 'write', 'off']
const modes = [undefined, ...suffixes]
const truths = [undefined, true, false]

/** A request's headers, as far as the switches read them. */
const lowerNamed = (headers: Record<string, string>): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

const given = <Value>(name: string, value: Value | undefined): object =>
  value === undefined ? {} : { [name]: value }

type Channel = { switches: ChannelSwitches; denies: Denied }
type Denied = { retrieve: boolean; store: boolean; storeReply: boolean }

/** What a channel takes away, by the contract's tables and not by our code. */
const denied = (
  mode: KeyMode | undefined,
  { off = false, store, reply }: { off?: boolean; store?: unknown; reply?: unknown } = {},
): Denied => {
  const forgets = off || mode === 'off' || mode === 'read'
  return {
    retrieve: off || mode === 'off' || mode === 'write',
    store: forgets || store === false,
    storeReply: forgets || reply === false,
  }
}

const headers: Channel[] = modes.flatMap(mode =>
  truths.flatMap(store =>
    truths.map(reply => ({
      switches: headerSwitches(
        lowerNamed({
          ...given('X-Memory-Mode', mode?.toUpperCase()),
          ...given('X-Memory-Store', store?.toString()),
          ...given('X-Memory-Store-Response', reply?.toString()),
        }),
      ),
      denies: denied(mode, { store, reply }),
    })),
  ),
)

const queries: Channel[] = modes.flatMap(mode =>
  truths.flatMap(memory =>
    truths.map(store => ({
      switches: querySwitches({
        ...given('mode', mode),
        ...given('memory', memory === undefined ? undefined : memory ? 'on' : 'off'),
        ...given('store', store),
      }),
      denies: denied(mode, { off: memory === false, store }),
    })),
  ),
)

const bodies: Channel[] = modes.flatMap(mode =>
  truths.flatMap(memory =>
    truths.flatMap(store =>
      truths.map(reply => ({
        // The second names say the same of what is stored (below).
        switches: bodySwitches({
          ...given('memory_mode', mode),
          ...given('memory', memory),
          ...given('memory_store', store),
          ...given('memory_store_response', reply),
        })[0]!,
        denies: denied(mode, { off: memory === false, store, reply }),
      })),
    ),
  ),
)

/** The policy of an account that has decided nothing. */
const open = { responseWithInput: false }

t.test('every suffix, header, query and body together: each only takes away', async t => {
  let combinations = 0
  const wrong: unknown[] = []
  for (const suffix of suffixes) {
    const key = denied(suffix)
    for (const header of headers) {
      for (const query of queries) {
        for (const body of bodies) {
          combinations++
          const all = [key, header.denies, query.denies, body.denies]
          const store = !all.some(({ store }) => store)
          const wanted: MemoryAccess = {
            retrieve: !all.some(({ retrieve }) => retrieve),
            store,
            storeReply: !all.some(({ storeReply }) => storeReply),
          }
          const channels = [header.switches, query.switches, body.switches]
          const decision = resolveMemoryAccess(permissionsByMode[suffix], channels, open)
          const same =
            decision.retrieve === wanted.retrieve &&
            decision.store === wanted.store &&
            decision.storeReply === wanted.storeReply
          if (!same && wrong.length < 5) wrong.push({ suffix, channels, decision, wanted })
        }
      }
    }
  }
  t.same(wrong, [])
  t.equal(combinations, 4 * 45 * 45 * 135)
})

t.test('both names of a switch in a body are heard', async t => {
  const names = ['memory_store', 'store', 'memory_store_response', 'store_response'] as const
  for (const name of names) {
    const access = resolveMemoryAccess(permissionsByMode.on, bodySwitches({ [name]: false }), open)
    const isReply = name.endsWith('response')
    t.strictSame(access, { retrieve: true, store: isReply, storeReply: !isReply }, name)
  }
})

t.test(
  'a policy binds the reply to what the user says; any channel asks for all as it was sent',
  async t => {
    const bound = { responseWithInput: true }
    const { on } = permissionsByMode
    t.match(resolveMemoryAccess(on, [{ store: false }], bound), { store: false, storeReply: false })
    t.match(resolveMemoryAccess(on, [{}], bound), { store: true, storeReply: true })
    t.match(resolveMemoryAccess(on, [{ store: false }], open), { store: false, storeReply: true })
    t.equal(resolveVerbatim([{}, {}], { verbatim: false }), false)
    t.equal(resolveVerbatim([{ verbatim: false }, { verbatim: true }], { verbatim: false }), true)
    t.equal(resolveVerbatim([{}], { verbatim: true }), true)
  },
)

t.test('invalid: a header that says something else', async t => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ 'X-Memory-Mode': 'readonly' }, /X-Memory-Mode must be one of on, off, read, write/],
    [{ 'X-Memory-Mode': 'constructor' }, /X-Memory-Mode/],
    [{ 'X-Memory-Store': 'no' }, /X-Memory-Store must be one of true, false/],
    [{ 'X-Memory-Store-Response': '0' }, /X-Memory-Store-Response/],
  ]
  for (const [headers, message] of cases) {
    t.throws(() => headerSwitches(lowerNamed(headers)), { reason: 'invalid', message })
  }
})
