import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { contract } from '#api/contract/contract.ts'
import { compileRequestShapes, type Endpoint } from '#api/contract/document.ts'
import { runInSlices } from '#shared/core/event-loop.ts'
import type { Shape } from '#shared/core/shape.ts'
import { refusalOf } from '#test/support/contract.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { startWeb } from '#test/support/processes.ts'
import { waitUntil } from '#test/support/wait-until.ts'

/** The shapes that requests are checked with. */
const requestShapes = Object.values(contract).flatMap(
  (parts: { endpoint: Endpoint; query?: Shape<unknown>; body?: Shape<unknown> }) =>
    [parts.query, parts.body].filter(shape => shape !== undefined),
)

const cpuMs = (since?: NodeJS.CpuUsage): number => {
  const { user, system } = process.threadCpuUsage(since)
  return (user + system) / 1_000
}

t.test('all schemas of requests are compiled ahead, one a turn', async t => {
  const before = process.threadCpuUsage()
  let turns = 0
  const steps = compileRequestShapes()
  for (let done = false; !done; await nextTurn()) {
    done = steps.next().done === true
    turns++
  }
  const all = cpuMs(before)
  t.comment(`${turns} turns, ${all.toFixed(0)} ms in all`)
  t.ok(turns > requestShapes.length / 2)

  const checked = process.threadCpuUsage()
  for (const shape of requestShapes) refusalOf(shape, {})
  t.ok(cpuMs(checked) < all / 2, 'no first check compiles')
  t.ok((await runInSlices(compileRequestShapes())) >= turns - 1)
})

t.test('a web process compiles them once it serves', async t => {
  const { config } = await createTestBackend(t)
  const web = await startWeb(t, config, { LOG_LEVEL: 'debug' })
  await waitUntil('all are compiled', () => web.output().includes('web.schemas-compiled'))
  t.match(web.output(), /"schemas":\d\d/)
})
