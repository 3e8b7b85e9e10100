import { proveBackup } from '#scripts/lab/prove/backup.ts'
import { proveClock } from '#scripts/lab/prove/clock.ts'
import { proveDeletions } from '#scripts/lab/prove/deletions.ts'
import { proveFullDisk } from '#scripts/lab/prove/disk.ts'
import { proveKills } from '#scripts/lab/prove/kills.ts'
import { proveLoad } from '#scripts/lab/prove/load.ts'
import { proveMalformed } from '#scripts/lab/prove/malformed.ts'
import { proveRecovery } from '#scripts/lab/prove/recovery.ts'
import { proveRestarts } from '#scripts/lab/prove/restarts.ts'
import type { SectionContext, SectionResult } from '#scripts/lab/prove/section.ts'
import { proveTenants } from '#scripts/lab/prove/tenants.ts'

export type Section = {
  description: string
  /** Its part of the time. */
  share: number
  /** What it does for a release instead of its part of the time. */
  release?: { count: number; unit: string } | { minutes: number; unit: string }
  run: (context: SectionContext) => Promise<SectionResult>
}

export const sections: Record<string, Section> = {
  kills: {
    description: 'Processes are killed and paused at random moments under load',
    share: 3,
    release: { count: 950, unit: 'kills' },
    run: proveKills,
  },
  restarts: {
    description:
      'Each database is stopped and killed at random moments under load, and started again',
    share: 2,
    run: proveRestarts,
  },
  recovery: {
    description:
      'One part at a time is killed; the slowest of all rounds until requests are answered again',
    share: 1,
    run: proveRecovery,
  },
  disk: {
    description: 'The disk of each database is full for a while under load',
    share: 1,
    run: proveFullDisk,
  },
  clock: {
    description: 'The clocks of single processes jump ahead and back under load',
    share: 1,
    run: proveClock,
  },
  backup: {
    description: 'One database is put back from an older backup, then the other',
    share: 1,
    run: proveBackup,
  },
  tenants: {
    description: 'Many tenants send every request of the contract, many with ids of other tenants',
    share: 2,
    release: { count: 200_000, unit: 'operations of tenants' },
    run: proveTenants,
  },
  malformed: {
    description: 'Nearly valid, random and broken requests over every route and over raw sockets',
    share: 2,
    release: { count: 3_000_000, unit: 'malformed requests' },
    run: proveMalformed,
  },
  deletions: {
    description: 'Deletions over one process are raced with reads over both',
    share: 1,
    release: { count: 10_000, unit: 'deletions' },
    run: proveDeletions,
  },
  load: {
    description: 'A steady rate of requests',
    share: 3,
    release: { minutes: 10, unit: 'minutes of load' },
    run: proveLoad,
  },
}
