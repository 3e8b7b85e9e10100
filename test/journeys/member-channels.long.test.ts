import t from 'tap'
import { countOpenTurns, waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { seedTeamMemories } from '#test/support/start/team.ts'
import { passMidnight, waitUntil } from '#test/support/checks/wait-until.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'

const { backend, base, newTeam } = await startTeamService(t)

/** A member, and the id of a memory that is hidden from them or, in the other world, not there. */
type World = { team: WorkingTeam; key: string; hidden: string }

type Answer = { status: number; headers?: unknown; body: unknown }

const secret = 'pay of eve: 90 #people'

/**
 * When all of it was said, in epoch milliseconds: long enough ago that no age, whose words are counted as tokens,
 * gets longer from one look to the next.
 */
const saidAt = Date.now() - 90 * 60_000

/** The metadata of the hidden memory when it was seeded. */
const metadata = { source: 'payroll' }

/** Everything a member can ask, or is told unasked, by name. */
const channels: Record<string, (world: World) => Promise<Answer>> = {
  search: ask('POST', '/v1/memory/search', { query: 'pay of eve', limit: 50 }),
  prepare: ask('POST', '/v1/memory/prepare', {
    messages: [{ role: 'user', content: 'What is the pay of eve?' }],
  }),
  'date-search by time': ask('POST', '/v1/memory/date-search', { from: '2000-01-01' }),
  'date-search of the team': ask('POST', '/v1/memory/date-search', {
    from: '2000-01-01',
    source: 'org',
  }),
  'date-search by question': ask('POST', '/v1/memory/date-search', {
    from: '2000-01-01',
    query: 'pay of eve',
  }),
  'search by metadata': ask('POST', '/v1/memory/search', { query: 'pay', limit: 50, metadata }),
  'date-search by metadata': ask('POST', '/v1/memory/date-search', {
    from: '2000-01-01',
    metadata,
  }),
  'model call': ask(
    'POST',
    '/v1/chat/completions',
    { model: 'openai/large', messages: [{ role: 'user', content: 'What is the pay of eve?' }] },
    { 'x-provider-key': 'sk-0123456789abcdef' },
  ),
  list: ask('GET', '/v1/memory/list'),
  export: ask('GET', '/v1/memory/export'),
  stats: ask('GET', '/v1/memory/stats'),
  sessions: ask('GET', '/v1/memory/sessions'),
  profile: ask('GET', '/v1/memory/profile'),
  warmup: ask('POST', '/v1/memory/warmup', {}),
  operations: ask('GET', '/v1/operations'),
  'left_out and the answer of ingest': ask('POST', '/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: `Fact: ${secret}` }],
    share: false,
  }),
  usage: ask('GET', '/v1/account/usage?by_day=true'),
  shared: ask('GET', '/v1/shares'),
  'review queue': async world => ask('GET', `/v1/orgs/${world.team.org}/memories/review`)(world),
  passes: async world => ask('GET', `/v1/orgs/${world.team.org}/debug/passes`)(world),
  'pipeline state': async world => ask('GET', `/v1/orgs/${world.team.org}`)(world),
  webhooks: ask('GET', '/v1/account/webhooks'),
  events: ask('GET', '/v1/account/events'),
  inspect: async world => ask('POST', '/v1/memory/inspect', { memory_id: world.hidden })(world),
  edit: async world =>
    ask('POST', '/v1/memory/edit', { memory_id: world.hidden, text: 'mine' })(world),
  'delete-ids': async world => ask('POST', '/v1/memory/delete-ids', { ids: [world.hidden] })(world),
  trace: async world => ask('GET', `/v1/traces/${world.hidden}`)(world),
  operation: async world => ask('GET', `/v1/operations/${world.hidden}`)(world),
  'taking back': async world => ask('DELETE', `/v1/shares/${world.hidden}`)(world),
  graft: async world => ask('POST', '/v1/memory/graft', { queries: ['pay of eve'] })(world),
}

function ask(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  return async ({ key }: World): Promise<Answer> => {
    const response = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    const told = [...response.headers].filter(([name]) => name.startsWith('x-memory'))
    return { status: response.status, headers: told, body: await response.text() }
  }
}

/** What differs between two worlds that a member cannot tell apart. */
const blurred = (answer: Answer, { team, key, hidden }: World): string =>
  [key, hidden, team.org]
    .reduce((text, value) => text.replaceAll(value, '(it)'), JSON.stringify(answer))
    .replaceAll(/mk_[\w…]+/g, '(key)')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '(id)')
    .replaceAll(/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g, '(time)')
    .replaceAll(/\d\d:\d\d/g, '(time)')
    .replaceAll(/just now|(?:\d+|an?) \w+ ago/g, '(age)')
    .replaceAll(/\b1[78]\d{11}\b/g, '(ms)')
    .replaceAll(/(_ms\\?":|processing[^0-9]*)[\d.]+/gi, '$1(ms)')
    .replaceAll(/(\d\.\d\d)\d+/g, '$1')

/** A team in which a member has said what a memory hidden from them says; or there is none. */
async function worldWith(hiddenText: string | undefined): Promise<World> {
  const team = await newTeam(['people'])
  const key = await team.addMember('bob@example.com')
  await team.share('Fact: launch: in May', { timestamp: saidAt })
  let hidden: string = crypto.randomUUID()
  if (hiddenText !== undefined) {
    const said = { tags: ['people'], reviewed: false, author: 'ada@example.com', metadata }
    const seed = { text: hiddenText, acquiredAt: saidAt + 1_000, ...said }
    hidden = (await seedTeamMemories(backend, team, [seed]))[0]!
  }
  await team.share(`Fact: ${secret}`, { as: key, timestamp: saidAt + 2_000 })
  // What the member does not see is listed at multiples of five minutes.
  await backend.postgres.query(
    `update shared_statements set recorded_at = recorded_at - interval '5 minutes' where org = $1`,
    [team.org],
  )
  return { team, key, hidden }
}

// Usage is told by day.
await passMidnight()
const none = await worldWith(undefined)
const same = await worldWith(secret)
const other = await worldWith('pay of eve: 95 #people')

for (const [name, observe] of Object.entries(channels)) {
  t.test(`${name} is the same with and without a hidden memory`, async t => {
    // What was asked before is stored and billed after its answer.
    await waitUntilIdle(backend)
    await waitUntil('every turn is done', async () => (await countOpenTurns(backend)) === 0)
    await backend.usage.flush()
    const without = blurred(await observe(none), none)
    t.equal(blurred(await observe(same), same), without, 'one that says the same')
    t.equal(blurred(await observe(other), other), without, 'one that says otherwise')
    t.notMatch(without, /"status":5/)
  })
}

// Last, since asking leaves usage and exchanges behind.
t.test('what is compared does tell, where a member may see the memory', async t => {
  const ada = { ...same, key: same.team.key }
  const names = ['search', 'prepare', 'date-search by time', 'model call', 'search by metadata']
  for (const name of [...names, 'date-search by metadata']) {
    const observe = channels[name]!
    const ofBob = blurred(await observe(same), same)
    t.not(blurred(await observe(ada), ada), ofBob, name)
  }
})
