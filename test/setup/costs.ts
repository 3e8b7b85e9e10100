import { readdirSync, readFileSync } from 'node:fs'

/** From `/proc/<pid>/stat`: the parent, and clock ticks of a hundredth of a second, also those of children that have ended. */
type ProcessStat = { parent: number; ticks: number }

function readStat(pid: number | string): ProcessStat {
  // The name of the program, in parentheses, may have blanks.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  return { parent: Number(fields[1]), ticks }
}

/** CPU seconds of a process and of all below it, also of those that have ended; 0 for one that is gone. */
export function readCpuSeconds(pid: number): number {
  const stats = new Map<number, ProcessStat>()
  for (const name of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      stats.set(Number(name), readStat(name))
    } catch {
      // It has ended meanwhile.
    }
  }
  const ticksBelow = (pid: number): number =>
    [...stats].reduce(
      (sum, [child, { parent }]) => (parent === pid ? sum + ticksBelow(child) : sum),
      stats.get(pid)?.ticks ?? 0,
    )
  return ticksBelow(pid) / 100
}

/** The most memory that a process has had, in MiB. */
function readPeakMiB(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1024)
}

/** What a run of tests costs in CPU and memory, told by Linux. */
export class Costs {
  /** CPU seconds by file. */
  readonly #files = new Map<string, number>()
  readonly #processes = new Map<number, { seconds: number; peakMiB: number }>()

  /** Notes a moment between two files of a test process; `file` is the one that has ended. */
  note(pid: number, file: string | null): void {
    const before = this.#processes.get(pid)?.seconds ?? 0
    const seconds = readCpuSeconds(pid)
    this.#processes.set(pid, { seconds, peakMiB: readPeakMiB(pid) })
    if (file !== null) this.#files.set(file, (this.#files.get(file) ?? 0) + seconds - before)
  }

  /** The sums and the ten dearest files. @param databaseSeconds CPU seconds of the databases */
  describe(databaseSeconds: number): string {
    const processes = [...this.#processes.values()]
    const sum = processes.reduce((sum, { seconds }) => sum + seconds, 0)
    const dearest = [...this.#files].toSorted(([, one], [, other]) => other - one).slice(0, 10)
    return [
      `CPU: ${sum.toFixed(0)} s in test processes, ${databaseSeconds.toFixed(0)} s in databases`,
      `Memory: ${processes.map(({ peakMiB }) => peakMiB).join(', ')} MiB at most`,
      ...dearest.map(([file, seconds]) => `${seconds.toFixed(1).padStart(6)} s  ${file}`),
    ].join('\n')
  }
}
