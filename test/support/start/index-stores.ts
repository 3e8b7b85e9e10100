import { randomUUID } from 'node:crypto'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import type { IndexRef, IndexSource } from '#shared/search/index/vault-indexes.ts'

const dimension = 4

export function memory(text: string): EmbeddedMemory {
  const vector = Float32Array.of(1, 0, 0, 0)
  return { id: randomUUID(), tier: 1, role: 'user', text, at: 1, tokens: 1, vector }
}

type Change = { vault: string; revision: number; put: EmbeddedMemory[]; remove: string[] }

/**
 * In-memory stores for the indexes: vaults with an epoch, a revision and a change
 * log. They can be slow, fail, and lose the change log.
 */
export function createIndexStores() {
  const rows = new Map<string, EmbeddedMemory[]>()
  const versions = new Map<string, { epoch: number; revision: number }>()
  let log: Change[] = []
  const calls = { load: 0, changes: 0, estimate: 0 }
  let batches = 0
  let gateOpened: Promise<void> | undefined
  let failures = 0
  let size = 100
  let rowsExpected = 1

  const keyOf = ({ scope, session }: Pick<IndexRef, 'scope' | 'session'>) =>
    `${scope.vault} ${session ?? ''}`

  function refOf(vault: string, session: string | null = null): IndexRef {
    const version = versions.get(vault) ?? { epoch: 1, revision: 0 }
    return { scope: { vault, ...version }, session, space: 'local', dimension }
  }

  function write(vault: string, put: EmbeddedMemory[], remove: string[] = []) {
    const { scope } = refOf(vault)
    const key = `${vault} `
    const others = (rows.get(key) ?? []).filter(({ id }) => !remove.includes(id))
    rows.set(key, [...others, ...put])
    versions.set(vault, { epoch: scope.epoch, revision: scope.revision + 1 })
    log.push({ vault, revision: scope.revision + 1, put, remove })
  }

  async function slowly() {
    await gateOpened
    await new Promise(done => setImmediate(done))
    if (failures > 0) {
      failures--
      throw new Error('the store is away')
    }
  }

  const source: IndexSource = {
    async load(ref, onBatch) {
      calls.load++
      const read = [...(rows.get(keyOf(ref)) ?? [])]
      await slowly()
      for (const row of read) {
        batches++
        await onBatch([row])
      }
    },
    async changes(ref, since) {
      calls.changes++
      const { vault, revision } = ref.scope
      const own = log.filter(
        change => change.vault === vault && change.revision > since && change.revision <= revision,
      )
      await slowly()
      if (own.length < revision - since) return null
      return {
        put: own.flatMap(({ put }) => put),
        remove: own.flatMap(({ remove }) => remove),
      }
    },
    async estimate() {
      calls.estimate++
      return { rows: rowsExpected, bytes: size }
    },
  }

  return {
    source,
    calls,
    batches: () => batches,
    refOf,
    write,
    clear(vault: string) {
      rows.delete(`${vault} `)
      const { scope } = refOf(vault)
      versions.set(vault, { epoch: scope.epoch + 1, revision: scope.revision + 1 })
    },
    forgetLog() {
      log = []
    },
    /** Reads wait until the returned function is called. */
    pauseReads() {
      const gate = Promise.withResolvers<void>()
      gateOpened = gate.promise
      return () => {
        gateOpened = undefined
        gate.resolve()
      }
    },
    failNext(times: number) {
      failures = times
    },
    estimateAs(bytes: number, rows = 1) {
      size = bytes
      rowsExpected = rows
    },
  }
}
