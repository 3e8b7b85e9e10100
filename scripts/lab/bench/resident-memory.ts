import { readFileSync } from 'node:fs'
import type { RunningProcess } from '#scripts/lab/bench/process.ts'

/** Resident memory of a process, in MiB. */
export function residentMemory({ child }: RunningProcess): number {
  const status = readFileSync(`/proc/${child.pid!}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}

/** Samples the resident memory of a process until its peak is asked for. */
export function watchResidentMemory(process: RunningProcess) {
  let peak = 0
  const sample = (): void => void (peak = Math.max(peak, residentMemory(process)))
  const timer = setInterval(sample, 20)
  return {
    now: (): number => residentMemory(process),
    async peak(): Promise<number> {
      clearInterval(timer)
      sample()
      return peak
    },
  }
}
