import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { finalizeStrandedWrites } from '#shared/org/audit.ts'
import { createTestClient, type TestClient } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { startWeb } from '#test/support/processes.ts'
import { buildTeam, seedTeamMemories, type Team } from '#test/support/team.ts'
import { waitUntil } from '#test/support/wait-until.ts'

t.setTimeout(60_000)

const kills = 5
const writers = 6
/** Set by hand when a run fails, to see the same moments again. */
const seed = Date.now() % 100_000

/** What an admin asked for, and whether an answer came. */
type Asked = { memory: string; action: string; answered: boolean }

/** Changes one memory until the process is gone; each request is sent again by nobody. */
async function write(admin: TestClient, team: Team, memory: string, asked: Asked[]): Promise<void> {
  const one = `/v1/orgs/${team.org}/memories/${memory}`
  for (let n = 0; ; n++) {
    const action = n % 3 === 0 ? 'update' : 'retag'
    const entry = { memory, action, answered: false }
    asked.push(entry)
    const change = `${entry.memory.slice(-4)} ${asked.length} ${n}`
    const body = action === 'update' ? { text: change } : { tags: [change] }
    try {
      const { status } = await admin.send('PATCH', one, { body })
      entry.answered = status === 200
    } catch {
      return
    }
  }
}

t.test(
  'kill -9 of the API while an admin writes: the audit tells what came about, no more and no less',
  async t => {
    t.comment(`seed ${seed}`)
    const config = await createTestConfig(t)
    const backend = await createTestBackend(t, { config })
    const team = await buildTeam(backend)
    const asked: Asked[] = []
    const memories: string[] = []

    for (let kill = 0; kill < kills; kill++) {
      const own = await seedTeamMemories(
        backend,
        team,
        Array.from({ length: writers }, (_, n) => ({ text: `fact ${kill} ${n}` })),
      )
      memories.push(...own)
      const web = await startWeb(t, config)
      const admin = createTestClient(web.base, team.adminKey)
      const answered = () => asked.filter(entry => entry.answered).length
      const before = answered()
      const writing = own.map(memory => write(admin, team, memory, asked))
      await waitUntil('changes are answered', () => answered() > before + 1)
      await delay((seed * (kill + 1) * 37) % 350)
      web.kill('SIGKILL')
      await Promise.all(writing)
      await web.exited
    }
    const { query } = backend.postgres
    const pending = await query(`select 1 from shared_writes where state = 'pending'`)
    await query(`update shared_writes set due_at = now() - interval '1 second'`)
    await finalizeStrandedWrites(backend)

    const { rows } = await query<{ memory: string; action: string; told: number }>(
      `select memory, action, count(*)::int as told from audit_events
     where org = $1 and action <> 'create' group by memory, action`,
      [team.org],
    )
    const documents = await backend.mongo.memories
      .find({ vault: team.vault, _id: { $in: memories } })
      .toArray()
    t.equal(documents.length, memories.length)
    for (const { _id: memory, version } of documents) {
      const own = rows.filter(row => row.memory === memory)
      const told = own.reduce((sum, row) => sum + row.told, 0)
      t.equal(told, version - 1, 'one event for each change of the document')
      for (const action of ['update', 'retag']) {
        const events = own.find(row => row.action === action)?.told ?? 0
        const mine = asked.filter(entry => entry.memory === memory && entry.action === action)
        const answered = mine.filter(entry => entry.answered).length
        t.ok(events >= answered && events <= mine.length, `${answered} answered, ${events} told`)
      }
    }
    const answered = asked.filter(entry => entry.answered).length
    t.ok(answered > kills, `${answered} of ${asked.length} changes were answered`)
    t.comment(`${pending.rows.length} changes were pending after ${kills} kills`)
  },
)
