import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { finalizeStrandedWrites } from '#shared/org/audit.ts'
import { createTestClient, type TestClient } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { startWeb } from '#test/support/processes.ts'
import { buildTeam, seedTeamMemories, type Team } from '#test/support/team.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { makeSharedWritesDue } from '#test/support/alter.ts'
import { auditEventsOf } from '#test/support/observe.ts'

// Five processes are started, one after the other: a busy machine needs longer than a minute.

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
  'kill -9 of the API while an admin writes: the audit holds what was done, no more and no less',
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
    const pending = await makeSharedWritesDue(backend)
    await finalizeStrandedWrites(backend)

    const changes = (await auditEventsOf(backend, team.org)).filter(
      ({ action }) => action !== 'create',
    )
    const documents = await backend.mongo.memories
      .find({ vault: team.vault, _id: { $in: memories } })
      .toArray()
    t.equal(documents.length, memories.length)
    for (const { _id: memory, version } of documents) {
      const own = changes.filter(change => change.memory === memory)
      t.equal(own.length, version - 1, 'one event for each change of the document')
      for (const action of ['update', 'retag']) {
        const events = own.filter(change => change.action === action).length
        const mine = asked.filter(entry => entry.memory === memory && entry.action === action)
        const answered = mine.filter(entry => entry.answered).length
        t.ok(events >= answered && events <= mine.length, `${answered} answered, ${events} told`)
      }
    }
    const answered = asked.filter(entry => entry.answered).length
    t.ok(answered > kills, `${answered} of ${asked.length} changes were answered`)
    t.comment(`${pending} changes were pending after ${kills} kills`)
  },
)
