import { setTimeout as delay } from 'node:timers/promises'
import { report } from '#scripts/bench/measure.ts'
import { cpuSeconds } from '#scripts/bench/proxy/load.ts'
import { startProcess } from '#scripts/bench/process.ts'
import { proportionalMemory } from '#scripts/bench/resident-memory.ts'
import { createBenchEnvironment } from '#scripts/bench/bench-environment.ts'

/** What a process does once after its start is over by then, V8's collections after `releaseStartMemory` included. */
const settleMs = 30_000
const idleMs = 60_000

const env = await createBenchEnvironment()
const programs = ['api/index.ts', 'workers/index.ts']
const running = await Promise.all(programs.map(program => startProcess(program, env)))
const pids = running.map(({ child }) => child.pid!)
await delay(settleMs)
const before = pids.map(cpuSeconds)
const startedAt = performance.now()
await delay(idleMs)
const seconds = (performance.now() - startedAt) / 1_000
const shares = pids.map((pid, index) => ((cpuSeconds(pid) - before[index]!) / seconds) * 100)
const sizes = running.map(proportionalMemory)
const sum = (figures: readonly number[]): number => figures.reduce((one, other) => one + other, 0)

programs.forEach((program, index) => {
  report(`${program}, idle, memory`, sizes[index]!, { unit: 'MiB' })
  report(`${program}, idle, share of a core`, shares[index]!, { unit: '%' })
})
report('web and worker, idle, memory', sum(sizes), { unit: 'MiB', bar: { most: 250 } })
report('web and worker, idle, share of a core', sum(shares), { unit: '%', bar: { most: 1 } })
await Promise.all(running.map(({ stop }) => stop()))
