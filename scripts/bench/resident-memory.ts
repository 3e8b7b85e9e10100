import { readFileSync } from 'node:fs'
import type { RunningProcess } from '#scripts/bench/process.ts'

/** Resident memory of a process, in MiB. */
export function residentMemory({ child }: RunningProcess): number {
  const status = readFileSync(`/proc/${child.pid!}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}

/** Memory of a process in MiB; a page that several share counts a part in each, so that sums are true. */
export function proportionalMemory({ child }: RunningProcess): number {
  const rollup = readFileSync(`/proc/${child.pid!}/smaps_rollup`, 'utf8')
  return Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1]) / 1_024
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
