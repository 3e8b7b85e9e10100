import type { VaultClient } from '../client.ts'
import {
  keyField,
  readNamespace,
  toItems,
  toItemText,
  toItemTexts,
  treeFilter,
} from './langgraph-items.ts'
import type { Item } from './langgraph-items.ts'
import { deleteRows, listRows, putTexts, type Fields, type TextRow } from './long-texts.ts'
import { assertNamespace, matchesFilter, matchesPath, readListing } from './langgraph-operations.ts'
import type { Found, Get, ListNamespaces, NamespaceOptions } from './langgraph-operations.ts'
import type { Put, Search } from './langgraph-operations.ts'

const hitsMax = 200

/**
 * The long-term memory of LangGraph (`BaseStore`) in a vault: items with a namespace and a key, searched by
 * meaning. An item is a memory of the core, cut into parts where it is long: its texts are the words, its JSON is
 * metadata. All but `index` has an effect, since everything is searched. Storing needs a card on file, as uploads do.
 */
export class VaultStore {
  readonly #vault: VaultClient

  constructor(vault: VaultClient) {
    this.#vault = vault
  }

  /** Reads see what was there before the writes of their batch, of which the last one for a key counts. */
  // oxlint-disable-next-line typescript/no-explicit-any -- LangGraph types results by their operations
  async batch(operations: readonly (Get | Put | Search | ListNamespaces)[]): Promise<any> {
    const puts = new Map<string, Put>()
    const results = await Promise.all(
      operations.map(async operation => {
        if ('namespacePrefix' in operation) return await this.#search(operation)
        if (!('key' in operation)) return await this.#listNamespaces(operation)
        if (!('value' in operation)) return await this.#get(operation)
        puts.set(JSON.stringify([operation.namespace, operation.key]), operation)
        return undefined
      }),
    )
    for (const put of puts.values()) await this.#put(put)
    return results
  }

  get(namespace: string[], key: string): Promise<Item | null> {
    return this.#get({ namespace, key })
  }

  async put(namespace: string[], key: string, value: Fields, index?: false | string[]) {
    assertNamespace(namespace)
    await this.#put({ namespace, key, value, index })
  }

  async delete(namespace: string[], key: string): Promise<void> {
    await this.#put({ namespace, key, value: null })
  }

  async search(prefix: string[], options: Omit<Search, 'namespacePrefix'> = {}): Promise<Found[]> {
    return await this.#search({ namespacePrefix: prefix, ...options })
  }

  async listNamespaces(options: NamespaceOptions = {}): Promise<string[][]> {
    return await this.#listNamespaces(readListing(options))
  }

  start(): void {}
  stop(): void {}

  async #get({ namespace, key }: Get): Promise<Item | null> {
    const rows = await listRows(this.#vault, treeFilter(namespace, await keyField(key)))
    return toItems(rows)[0] ?? null
  }

  async #put({ namespace, key, value }: Put): Promise<void> {
    const field = await keyField(key)
    const before = await listRows(this.#vault, treeFilter(namespace, field))
    if (value === null) return await deleteRows(this.#vault, before)
    const text = toItemText({ namespace, key, value }, field, toItemTexts(before)[0])
    await putTexts(this.#vault, 'lg_', [text], before)
  }

  async #search({ namespacePrefix, filter, limit = 10, offset = 0, query }: Search) {
    const found = query
      ? await this.#nearest(namespacePrefix, query)
      : toItems(await listRows(this.#vault, treeFilter(namespacePrefix)))
    return found
      .filter(({ value }) => matchesFilter(value, filter ?? {}))
      .slice(offset, offset + limit)
  }

  async #nearest(prefix: string[], query: string): Promise<Found[]> {
    const { memories } = await this.#vault.call('POST /v1/memory/search', {
      body: { query, limit: hitsMax, metadata: treeFilter(prefix) },
    })
    const hits = new Map<string, { item: Item | undefined; row: TextRow; score: number }>()
    for (const { id, content, metadata = {}, relevance } of memories) {
      const row = { id, text: content, metadata }
      const name = JSON.stringify(readNamespace(metadata).concat(String(metadata.lg_key)))
      // The best part of an item comes first.
      if (!hits.has(name)) hits.set(name, { item: toItems([row])[0], row, score: relevance })
    }
    const items = [...hits.values()].map(async ({ item, row: { metadata }, score }) => {
      const key = String(metadata.lg_key)
      const whole = item ?? (await this.#get({ namespace: readNamespace(metadata), key }))
      return whole ? [{ ...whole, score }] : []
    })
    return (await Promise.all(items)).flat()
  }

  async #listNamespaces({ matchConditions = [], maxDepth, limit, offset }: ListNamespaces) {
    const names = new Map<string, string[]>()
    for (const { metadata } of await listRows(this.#vault, treeFilter([]))) {
      const namespace = readNamespace(metadata)
      if (!matchConditions.every(condition => matchesPath(namespace, condition))) continue
      const cut = namespace.slice(0, maxDepth)
      names.set(cut.join('.'), cut)
    }
    return [...names.keys()]
      .sort()
      .slice(offset, offset + limit)
      .map(name => names.get(name)!)
  }
}
