import type { Cluster } from '#scripts/lab/prove/cluster.ts'
import { pickOne, type Faults, type Figure } from '#scripts/lab/prove/section.ts'

/** Answers that promise nothing: try again. 0 is a connection that broke. */
const retryStatuses: ReadonlySet<number> = new Set([0, 429, 503])
const requestMs = 20_000
const afterFaultMs = 100

type LedgerOptions = {
  cluster: Cluster
  key: string
  random: () => number
  faults: Faults
}

/** Every exchange that was sent to one vault, and every one that was acknowledged with a 2xx. */
export class ExchangeLedger {
  readonly #options: LedgerOptions
  readonly #sent = new Set<string>()
  readonly #acknowledged = new Set<string>()
  #foundMissing = 0
  #wrongAnswers = 0

  constructor(options: LedgerOptions) {
    this.#options = options
  }

  static async open(name: string, options: Omit<LedgerOptions, 'key'>): Promise<ExchangeLedger> {
    return new ExchangeLedger({ ...options, key: await options.cluster.createAccount(name) })
  }

  /** @returns whether it was acknowledged; a pause is made after one that was not. */
  async sendExchange(source: string, isAwaited = this.#options.random() < 0.2): Promise<boolean> {
    const { cluster, key, random } = this.#options
    const port = pickOne(cluster.ports, random)
    if (port === undefined) return await pauseAfterFault()
    const content = `exchange ${this.#sent.size} of ${source}`
    this.#sent.add(content)
    const path = `/v1/memory/ingest${isAwaited ? '?wait=true' : ''}`
    const { status, text } = await cluster.send(port, key, path, {
      body: { messages: [{ role: 'user', content }] },
      signal: AbortSignal.timeout(requestMs),
    })
    if (status === 200 || status === 202) {
      this.#acknowledged.add(content)
      if (status === 200) await this.#find(content, port)
      return true
    }
    if (!retryStatuses.has(status)) {
      this.#wrongAnswers++
      this.#options.faults.add(`${status} ${text} to ${content}`)
    }
    return await pauseAfterFault()
  }

  /** What was acknowledged until now may be lost from here on: it was stored after a backup. */
  get acknowledged(): ReadonlySet<string> {
    return new Set(this.#acknowledged)
  }

  /** @param mayBeLost acknowledged exchanges that need not be there */
  async compare(mayBeLost: ReadonlySet<string> = new Set()): Promise<Figure[]> {
    const { faults } = this.#options
    const times = await this.#readVault()
    const lost = [...this.#acknowledged].filter(
      content => !times.has(content) && !mayBeLost.has(content),
    )
    const doubled = [...times].filter(([, count]) => count > 1).map(([content]) => content)
    const unsent = [...times.keys()].filter(content => !this.#sent.has(content))
    for (const content of lost) faults.add(`lost: ${content}`)
    for (const content of doubled) faults.add(`stored twice: ${content}`)
    for (const content of unsent) faults.add(`never sent: ${content}`)
    return [
      { name: 'exchanges acknowledged', value: this.#acknowledged.size },
      {
        name: 'exchanges without an answer or refused',
        value: this.#sent.size - this.#acknowledged.size,
      },
      { name: 'answers other than 2xx, 429 and 503', value: this.#wrongAnswers, most: 0 },
      { name: 'acknowledged and lost', value: lost.length, most: 0 },
      { name: 'stored twice', value: doubled.length, most: 0 },
      { name: 'stored and never sent', value: unsent.length, most: 0 },
      { name: 'waited for and not found', value: this.#foundMissing, most: 0 },
    ]
  }

  /** How often the vault has each content. */
  async #readVault(): Promise<Map<string, number>> {
    const { cluster, key } = this.#options
    const { status, text } = await cluster.send(cluster.ports[0]!, key, '/v1/memory/export')
    if (status !== 200)
      throw new Error(`The export of the vault was answered with ${status} ${text}`)
    const times = new Map<string, number>()
    for (const line of text.split('\n').filter(Boolean)) {
      const { content } = JSON.parse(line) as { content: string }
      times.set(content, (times.get(content) ?? 0) + 1)
    }
    return times
  }

  /** An exchange whose storing was waited for is in every list from then on. */
  async #find(content: string, port: number): Promise<void> {
    const { cluster, key, random, faults } = this.#options
    const path = `/v1/memory/list?limit=5&search=${encodeURIComponent(content)}`
    const found = await cluster.send(pickOne(cluster.ports, random) ?? port, key, path)
    if (found.status !== 200 || found.text.includes(`"${content}"`)) return
    this.#foundMissing++
    faults.add(`${content} was stored by its answer, and the list has no such memory`)
  }
}

async function pauseAfterFault(): Promise<false> {
  await new Promise(resolve => setTimeout(resolve, afterFaultMs))
  return false
}
