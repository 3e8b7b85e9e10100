import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { inOrgLane } from '#shared/org/pipeline/org-lane.postgres.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const backend = await createTestBackend(t)
const { postgres } = backend
const { org } = await buildTeam(backend)
const { signal } = new AbortController()

const holderOf = async (): Promise<string | null> => {
  const { rows } = await postgres.query<{ turn: string | null }>(
    'select lane_turn as turn from org_pipelines where org = $1',
    [org],
  )
  return rows[0]?.turn ?? null
}

/** Takes the lane and keeps it until it is let go. */
async function keepLane(turn: string) {
  let letGo!: () => void
  const going = new Promise<void>(resolve => (letGo = resolve))
  const ended = inOrgLane(postgres, { org, turn }, signal, () => going)
  await waitUntil('the lane is taken', async () => (await holderOf()) === turn)
  return { letGo, ended }
}

t.test('who has the lane holds no transaction, and others wait for it', async t => {
  const [first, second] = [mintId(), mintId()]
  const { letGo, ended } = await keepLane(first)
  const { rows } = await postgres.query<{ open: number }>(
    `select count(*)::int as open from pg_stat_activity
     where datname = current_database() and state like 'idle in transaction%'`,
  )
  t.equal(rows[0]!.open, 0)
  const order: string[] = []
  const other = inOrgLane(postgres, { org, turn: second }, signal, async () => order.push('second'))
  const stop = new AbortController()
  const third = inOrgLane(postgres, { org, turn: mintId() }, stop.signal, async () => {})
  stop.abort(new Error('drained'))
  await t.rejects(third, /drained|aborted/)
  t.same(order, [])
  letGo()
  await Promise.all([ended, other])
  t.same(order, ['second'])
  t.equal(await holderOf(), null)
})

t.test('a failure leaves the lane', async t => {
  const work = () => Promise.reject(new Error('no answer'))
  await t.rejects(inOrgLane(postgres, { org, turn: mintId() }, signal, work), /no answer/)
  t.equal(await holderOf(), null)
})

t.test(
  'the lane of a process that died is free for its turn at once, and later for others',
  async t => {
    const dead = mintId()
    const take = (turn: string, seconds: number) =>
      postgres.query(
        `update org_pipelines set lane_turn = $2, lane_until = now() + make_interval(secs => $3)
       where org = $1`,
        [org, turn, seconds],
      )
    await take(dead, 3_600)
    t.equal(await inOrgLane(postgres, { org, turn: dead }, signal, async () => 'again'), 'again')
    await take(dead, -1)
    t.equal(await inOrgLane(postgres, { org, turn: mintId() }, signal, async () => 'next'), 'next')
  },
)

t.test('work learns that the lane went to another turn', async t => {
  const own = mintId()
  const work = (inLane: AbortSignal) =>
    new Promise<never>((_, reject) => {
      inLane.addEventListener('abort', () => reject(inLane.reason as Error))
    })
  const ended = inOrgLane(postgres, { org, turn: own }, signal, work)
  await waitUntil('the lane is taken', async () => (await holderOf()) === own)
  await postgres.query('update org_pipelines set lane_turn = $2 where org = $1', [org, mintId()])
  await t.rejects(ended, /went to another turn/)
})

t.test('an organization that is gone has no lane to wait for', async t => {
  const gone = { org: mintId(), turn: mintId() }
  t.equal(await inOrgLane(postgres, gone, signal, async () => 'nothing to do'), 'nothing to do')
})
