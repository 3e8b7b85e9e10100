import { readFileSync } from 'node:fs'
import { report } from '#scripts/bench/measure.ts'
import { startProcess } from '#scripts/bench/process.ts'
import { createBenchEnvironment } from '#scripts/bench/bench-environment.ts'

const mebibyte = 1024 * 1024

/** Resident memory of a process, in MiB. */
function residentMemory(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return (Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024) / mebibyte
}

const env = await createBenchEnvironment()
for (const program of ['api/index.ts', 'workers/index.ts']) {
  const running = await startProcess(program, env)
  await new Promise(resolve => setTimeout(resolve, 2_000))
  report(`${program}, idle, resident`, residentMemory(running.child.pid!), { unit: 'MiB' })
  await running.stop()
}
