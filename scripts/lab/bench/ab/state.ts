import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { run } from '#scripts/lab/bench/ab/checkout.ts'
import { ServiceClient } from '#scripts/lab/bench/ab/service-client.ts'
import { startProcess, type RunningProcess } from '#scripts/lab/bench/process.ts'
import { startServices, type DatabaseServices } from '#scripts/services/services.ts'

export const processNames = ['web', 'worker', 'mongodb', 'postgres'] as const
type ProcessName = (typeof processNames)[number]

/** CPU milliseconds of each process. */
export type CpuTimes = Record<ProcessName, number>

const ticksPerSecond = 100

/** A state of the project that runs: web process, worker, and databases of its own. */
export class RunningState {
  readonly #folder: string
  readonly #env: Record<string, string>
  readonly #services: DatabaseServices
  readonly #web: RunningProcess
  readonly #worker: RunningProcess

  private constructor(
    folder: string,
    env: Record<string, string>,
    services: DatabaseServices,
    [web, worker]: readonly [RunningProcess, RunningProcess],
  ) {
    this.#folder = folder
    this.#env = env
    this.#services = services
    this.#web = web
    this.#worker = worker
  }

  /**
   * Starts the programs of a checkout on new databases, whose engines are those of the state that measures.
   *
   * @param providerUrl of models and embeddings
   */
  static async start(
    folder: string,
    dataDir: string,
    providerUrl: string,
    signal: AbortSignal,
  ): Promise<RunningState> {
    const services = await startServices({ dataDir, log: () => {} })
    const started: RunningProcess[] = []
    try {
      const env = {
        ...(process.env as Record<string, string>),
        DATABASE_URL: services.databaseUrl,
        MONGODB_URI: services.mongodbUri,
        MASTER_KEY: '11'.repeat(32),
        KEY_PEPPER: 'a pepper for benchmarks',
        PORT: '0',
        LOG_LEVEL: 'error',
        RATE_LIMITS: 'off',
        EMBEDDINGS: 'openai/text-embedding-3-small',
        OPENAI_BASE_URL: providerUrl,
        OPENAI_API_KEY: 'sk-of-the-benchmark',
      }
      await run(process.execPath, ['scripts/migrate.ts'], signal, { cwd: folder, env })
      const web = await startProcess('api/index.ts', env, [], [], folder)
      started.push(web)
      const worker = await startProcess('workers/index.ts', env, [], [], folder)
      return new RunningState(folder, env, services, [web, worker])
    } catch (error) {
      await Promise.all(started.map(child => child.stop()))
      await services.stop()
      throw error
    }
  }

  /** A client of the web process that always runs, with the key of a new account. */
  async createClient(): Promise<ServiceClient> {
    const email = `${randomBytes(4).toString('hex')}@example.com`
    const args = [
      'scripts/create-account.ts',
      '--email',
      email,
      '--payment-method',
      'card',
      '--json',
    ]
    const { memory_key: key } = JSON.parse(
      await run(process.execPath, args, undefined, { cwd: this.#folder, env: this.#env }),
    ) as { memory_key: string }
    return this.clientOf(this.#web, key)
  }

  /** A client of one web process. */
  clientOf({ port }: RunningProcess, key: string): ServiceClient {
    return new ServiceClient(port, key)
  }

  /** Starts another web process, which holds no vault yet. */
  startColdWeb(extra: Record<string, string> = {}): Promise<RunningProcess> {
    return startProcess('api/index.ts', { ...this.#env, ...extra }, [], [], this.#folder)
  }

  /** CPU that all processes have used so far. @param web the web process that counts */
  cpuTimes(web: RunningProcess = this.#web): CpuTimes {
    return {
      web: cpuBelow(web.child.pid!),
      worker: cpuBelow(this.#worker.child.pid!),
      mongodb: cpuBelow(this.#services.pids.mongodb!),
      postgres: cpuBelow(this.#services.pids.postgres!),
    }
  }

  /** Waits until what was accepted is stored: all processes idle for a third of a second, 20 s at most. */
  async settle(web: RunningProcess = this.#web): Promise<void> {
    let before = sum(this.cpuTimes(web))
    for (let quiet = 0, looks = 0; quiet < 3 && looks < 180; looks++) {
      await delay(110)
      const now = sum(this.cpuTimes(web))
      quiet = now - before <= 10 ? quiet + 1 : 0
      before = now
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.#web.stop(), this.#worker.stop()])
    await this.#services.stop()
  }
}

export const sum = (times: CpuTimes): number =>
  processNames.reduce((total, name) => total + times[name], 0)

/** CPU milliseconds of a process, of those that descend from it, and of children that have ended. */
function cpuBelow(root: number): number {
  const children = readdirSync(`/proc/${root}/task`).flatMap(thread => {
    try {
      const text = readFileSync(join('/proc', String(root), 'task', thread, 'children'), 'utf8')
      return text.split(' ').filter(Boolean).map(Number)
    } catch {
      return []
    }
  })
  return cpuMsOf(root) + children.reduce((total, pid) => total + cpuOfChild(pid), 0)
}

function cpuOfChild(pid: number): number {
  try {
    return cpuBelow(pid)
  } catch {
    // It has ended: the next look finds its time with its parent.
    return 0
  }
}

function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0)
  return (ticks * 1_000) / ticksPerSecond
}
