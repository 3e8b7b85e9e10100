import { readFileSync } from 'node:fs'
import { Agent } from 'undici'
import { createBenchEnvironment, log } from '#scripts/lab/bench/bench-environment.ts'
import { startProcess, type RunningProcess } from '#scripts/lab/bench/process.ts'
import { createCredentials } from '#scripts/create-credentials.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { openPostgres, type Postgres } from '#shared/storage/postgres/connect.ts'

export type Answer = { status: number; text: string }

export type RequestOptions = {
  method?: string
  /** Sent as it is when it is a text or bytes, else as JSON. */
  body?: unknown
  type?: string
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** One of the processes under proof; it is replaced when it is killed. */
type Member = { program: 'api/index.ts' | 'workers/index.ts'; running: RunningProcess | null }

/** Two web and two worker processes on new databases, and their databases seen from outside. */
export class Cluster {
  readonly #env: Record<string, string>
  readonly #members: Member[] = [
    { program: 'api/index.ts', running: null },
    { program: 'api/index.ts', running: null },
    { program: 'workers/index.ts', running: null },
    { program: 'workers/index.ts', running: null },
  ]
  readonly #postgres: Postgres
  readonly #agent = new Agent()
  /** Processes that ended and were not asked to; each is started again. */
  crashes = 0
  #isStopped = false

  private constructor(env: Record<string, string>) {
    this.#env = env
    // A database that a section stops is no fault of this connection.
    this.#postgres = openPostgres(env.DATABASE_URL!, { max: 1, onError: () => {} })
  }

  /** @param extra further variables of the processes */
  static async start(extra: Record<string, string>): Promise<Cluster> {
    const cluster = new Cluster(await createBenchEnvironment(extra))
    await cluster.startProcesses()
    return cluster
  }

  /** The environment of the processes. */
  get environment(): Readonly<Record<string, string>> {
    return this.#env
  }

  get count(): number {
    return this.#members.length
  }

  /** Indexes of the processes that run; others are being started. */
  get running(): number[] {
    return this.#members.flatMap(({ running }, index) => (running ? [index] : []))
  }

  isWeb(index: number): boolean {
    return this.#members[index]!.program === 'api/index.ts'
  }

  /** @throws where the process does not run */
  portOf(index: number): number {
    return this.#members[index]!.running!.port
  }

  /** Ports of the web processes that run. */
  get ports(): number[] {
    return this.#members.flatMap(({ program, running }) =>
      program === 'api/index.ts' && running ? [running.port] : [],
    )
  }

  /**
   * Ends one process at once and starts it again; one that is being started is left alone.
   *
   * @param execArgv options of Node for the new one
   */
  async kill(index: number, execArgv: string[] = []): Promise<void> {
    const member = this.#members[index]!
    const { running } = member
    if (!running) return
    member.running = null
    const ended = new Promise(resolve => running.child.once('exit', resolve))
    running.child.kill('SIGKILL')
    await ended
    await this.#startMember(member, execArgv)
  }

  /** Sends a message to one process. */
  tell(index: number, message: object): void {
    this.#members[index]!.running?.child.send(message)
  }

  /** Stops all processes in order; the databases go on. */
  async stopProcesses(program?: Member['program']): Promise<void> {
    const members = this.#members.filter(member => !program || member.program === program)
    await Promise.all(
      members.map(async member => {
        const { running } = member
        member.running = null
        await running?.stop()
      }),
    )
  }

  /** Starts the processes that do not run. */
  async startProcesses(): Promise<void> {
    const members = this.#members.filter(({ running }) => !running)
    await Promise.all(members.map(member => this.#startMember(member)))
  }

  /** Stops one process in the middle of whatever it does, and lets it go on after a time. */
  async pause(index: number, ms: number): Promise<void> {
    const child = this.#members[index]!.running?.child
    child?.kill('SIGSTOP')
    await new Promise(resolve => setTimeout(resolve, ms))
    child?.kill('SIGCONT')
  }

  /** An owner key of a new account that may pay everything. */
  async createAccount(name: string): Promise<string> {
    const { memoryKey } = await this.createOwner(name)
    return memoryKey
  }

  /** As `createAccount`, with an admin credential in addition to the key. */
  async createOwner(name: string): Promise<{ memoryKey: string; adminKey: string }> {
    const config = readConfig(this.#env)
    const backend = await openBackend(config, log, 'web')
    try {
      const { memoryKey, adminKey } = await backend.postgres.transaction(tx =>
        createCredentials(tx, config.keyPepper, {
          email: `${name}@example.com`,
          keyName: name,
          keyLifetimeDays: null,
          adminLifetimeDays: 30,
          paymentMethod: 'card',
          balance: null,
        }),
      )
      return { memoryKey, adminKey: adminKey! }
    } finally {
      await backend.close()
    }
  }

  /** Sends a request to a web process; status 0 where the connection broke or nothing runs. */
  async send(
    port: number,
    key: string,
    path: string,
    { method, body, type = 'application/json', headers, signal }: RequestOptions = {},
  ): Promise<Answer> {
    try {
      // It takes less CPU than fetch, which the processes under proof need.
      const response = await this.#agent.request({
        origin: `http://127.0.0.1:${port}`,
        // As it is: a URL would be normalized.
        path,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: {
          authorization: `Bearer ${key}`,
          ...(body !== undefined && { 'content-type': type }),
          ...headers,
        },
        ...(body !== undefined && {
          body:
            typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
        }),
        signal: signal ?? AbortSignal.timeout(60_000),
      })
      return { status: response.statusCode, text: await response.body.text() }
    } catch {
      return { status: 0, text: '' }
    }
  }

  /** Waits until no accepted work is open. @throws Error after `withinMs`. */
  async settle(withinMs: number): Promise<void> {
    const until = Date.now() + withinMs
    for (;;) {
      const open = await this.countOpenOperations()
      if (open === 0) return
      if (Date.now() > until) throw new Error(`${open} operations are open after ${withinMs} ms`)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }

  /** Operations that are accepted and not done. @returns NaN where the database does not answer */
  async countOpenOperations(): Promise<number> {
    try {
      const { rows } = await this.#postgres.query<{ n: number }>(
        `select count(*)::int n from operations where state in ('accepted', 'running')`,
      )
      return rows[0]!.n
    } catch {
      return Number.NaN
    }
  }

  /** Resident memory of the processes in MiB, and connections of this database. */
  async resources(): Promise<{ memoryMiB: number; connections: number }> {
    const { rows } = await this.#postgres.query<{ n: number }>(
      'select count(*)::int n from pg_stat_activity where datname = current_database()',
    )
    const pages = this.#members.map(({ running }) => residentPages(running?.child.pid))
    const memoryMiB = Math.round((pages.reduce((sum, count) => sum + count, 0) * 4) / 1_024)
    return { memoryMiB, connections: rows[0]!.n }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.stopProcesses()
    await this.#postgres.close()
    await this.#agent.destroy()
  }

  async #startMember(member: Member, execArgv: string[] = []): Promise<void> {
    const running = await startProcess(member.program, this.#env, [], execArgv)
    member.running = running
    running.child.once('exit', () => {
      if (member.running !== running) return
      this.crashes++
      member.running = null
      void this.#restart(member)
    })
  }

  /** Tries until it starts: what it needs may be away. */
  async #restart(member: Member): Promise<void> {
    while (!this.#isStopped && !member.running) {
      await this.#startMember(member).catch(() => new Promise(resolve => setTimeout(resolve, 500)))
    }
  }
}

/** Pages of 4 KiB; 0 on systems without /proc. */
function residentPages(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
  } catch {
    return 0
  }
}
