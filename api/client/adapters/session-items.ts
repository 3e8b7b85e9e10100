import type { VaultClient } from '../client.ts'
import {
  createQueue,
  deleteRows,
  fieldsMax,
  joinChunks,
  pieceBytesMax,
  splitText,
  toChunks,
  toFields,
  uploadLines,
  type Fields,
  type Line,
} from './long-texts.ts'

/** An item of a conversation and the memories that it is. */
export type StoredItem = { item: Fields; at: number; rows: { id: string }[] }

/**
 * The items of a conversation as memories of a session of the vault, one after another in time. The words of an item
 * are the text of its memories, what else it has is in their metadata. An item without words, such as the call of a
 * tool, is named by its type.
 *
 * Metadata: `item_of` the kind of items, `item_at` the time of the item, `item_part` and `item_parts`, `item_data0`
 * and so on the JSON of the item without its words.
 */
export class SessionItems {
  readonly #vault: VaultClient
  readonly #session: string
  readonly #kind: string
  readonly #inTurn = createQueue()
  #last = 0

  constructor(vault: VaultClient, session: string, kind: string) {
    this.#vault = vault
    this.#session = session
    this.#kind = kind
  }

  /** Adds items after what is there, also beside another writer. */
  async add(items: readonly Fields[]): Promise<void> {
    if (items.length > 0) await this.#inTurn(() => this.#add(items))
  }

  async #add(items: readonly Fields[]): Promise<void> {
    // After what is there, also where clocks of machines differ.
    const [newest] = await this.read(1)
    let at = Math.max(Date.now(), this.#last + 1, Math.trunc(newest?.at ?? 0) + 1)
    const added = new Set<number>()
    const lines = items.flatMap(item => {
      // With a fraction: another process may begin in the same millisecond.
      const first = at + Math.random()
      added.add(first)
      const { role, parts } = toParts(item)
      return parts.map(({ content, chunk }, part): Line => {
        const metadata = {
          item_of: this.#kind,
          item_at: first,
          item_part: part,
          item_parts: parts.length,
          ...toFields('item_', chunk),
        }
        // A millisecond for each part: equal texts are apart, and the order is that of time.
        return { content, role, timestamp: at++, metadata }
      })
    })
    this.#last = at
    if ((await uploadLines(this.#vault, lines, this.#session)) === 0) return
    // Another writer has stored the same words in the same millisecond: once more, after them.
    const rows = await this.#rows()
    const own = rows.filter(({ metadata }) => added.has(Number(metadata.item_at)))
    await this.#add(items)
    await deleteRows(this.#vault, own)
  }

  /** The items whose parts are all there, oldest first; with a limit the newest of them. */
  async read(limit = Infinity): Promise<StoredItem[]> {
    const whole = [...groupByItem(await this.#rows(limit))].filter(([, rows]) => isWhole(rows))
    return whole
      .sort(([a], [b]) => a - b)
      .slice(limit === Infinity ? 0 : -limit)
      .map(([at, rows]) => ({ item: toItem(rows), at, rows }))
  }

  /** The memories of all items, or of so many of the newest and a few more. */
  async #rows(limit = Infinity): Promise<ItemRow[]> {
    const rows: ItemRow[] = []
    let to: string | undefined = '9999-12-31'
    while (to !== undefined && [...groupByItem(rows).values()].filter(isWhole).length < limit) {
      const page = await this.#page(to, Math.min(200_000, limit * 500))
      for (const { id, content, metadata = {} } of page.memories) {
        rows.push({ id, content, metadata })
      }
      to = page.truncated ? page.returned.from : undefined
    }
    return rows
  }

  async remove(items: readonly StoredItem[]): Promise<void> {
    await deleteRows(
      this.#vault,
      items.flatMap(({ rows }) => rows),
    )
  }

  /** Empties the session of the vault. */
  async clear(): Promise<void> {
    await this.#vault.call('DELETE /v1/memory', { headers: { 'x-session-id': this.#session } })
  }

  #page(to: string, tokens: number) {
    return this.#vault.call('POST /v1/memory/date-search', {
      body: {
        from: '0001-01-01',
        to,
        session_id: this.#session,
        metadata: { item_of: this.#kind },
        max_tokens: tokens,
      },
    })
  }
}

type ItemRow = { id: string; content: string; metadata: Fields }

const groupByItem = (rows: readonly ItemRow[]): Map<number, ItemRow[]> => {
  const items = new Map<number, ItemRow[]>()
  for (const row of rows) {
    const at = Number(row.metadata.item_at)
    items.set(at, [...(items.get(at) ?? []), row])
  }
  return items
}

const isWhole = (rows: readonly ItemRow[]): boolean => rows.length === rows[0]?.metadata.item_parts

type Role = 'user' | 'assistant'

/** The role of an item, and the text of each of its memories with the rest of the item in fields. */
function toParts(item: Fields): { role: Role; parts: { content: string; chunk: string[] }[] } {
  const words: string[] = []
  let rest = takeWords(item, words)
  let pieces = splitText(words.join(''), pieceBytesMax)
  if (pieces.some(piece => piece.trim() === '')) {
    // The service takes no memory without words: the item is data as a whole.
    rest = item
    const name = [item.type, item.name].filter(one => typeof one === 'string').join(' ')
    const plain = words.join('').trim().replace(/\s+/g, ' ') || `(${name || 'no text'})`
    pieces = splitText(plain, pieceBytesMax)
  }
  const chunks = toChunks(JSON.stringify(rest), fieldsMax - 4)
  const parts = Array.from({ length: Math.max(pieces.length, chunks.length) }, (_, at) => ({
    content: pieces[at] ?? '(data)',
    chunk: chunks[at] ?? [],
  }))
  return { role: item.role === 'user' ? 'user' : 'assistant', parts }
}

/** The fields of an item that hold words, as texts or in parts with a text. */
const fieldsOfWords = ['content', 'output']

/**
 * Moves the words of an item to a list: what is left has the number of their characters in their place. What a model
 * has thought is none of its words.
 */
function takeWords(item: Fields, words: string[]): Fields {
  const take = (text: string): { words: number } => {
    words.push(text)
    return { words: Array.from(text).length }
  }
  const takePart = (part: unknown): unknown =>
    isObject(part) && typeof part.text === 'string' ? { ...part, text: take(part.text) } : part
  const left = { ...item }
  const names = item.type === 'reasoning' ? [] : fieldsOfWords.filter(field => field in item)
  for (const name of names) {
    const value = item[name] as unknown
    left[name] = Array.isArray(value)
      ? value.map(part => (typeof part === 'string' ? take(part) : takePart(part)))
      : typeof value === 'string'
        ? take(value)
        : takePart(value)
  }
  return left
}

/** The item of `takeWords`. */
function giveWords(rest: Fields, text: string): Fields {
  const characters = Array.from(text)
  let at = 0
  const give = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(give)
    if (!isObject(value)) return value
    if (typeof value.words === 'number' && Object.keys(value).length === 1) {
      at += value.words
      return characters.slice(at - value.words, at).join('')
    }
    return 'text' in value ? { ...value, text: give(value.text) } : value
  }
  const given = fieldsOfWords.filter(name => name in rest).map(name => [name, give(rest[name])])
  return { ...rest, ...Object.fromEntries(given) }
}

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null

function toItem(rows: readonly ItemRow[]): Fields {
  const ordered = [...rows].sort((a, b) => a.metadata.item_part - b.metadata.item_part)
  const text = ordered.map(({ content }) => content).join('')
  const data = joinChunks(
    'item_',
    ordered.map(({ metadata }) => metadata),
  )
  if (data !== '') return giveWords(JSON.parse(data) as Fields, text)
  // The first form: the rest of an item in each of its memories, or the item as JSON in brackets.
  const rest = ordered[0]!.metadata.item_rest as string | undefined
  if (rest === undefined) {
    return JSON.parse(ordered.map(({ content }) => content.slice(1, -1)).join('')) as Fields
  }
  const item = JSON.parse(rest) as Fields
  if (item.content === null) return { ...item, content: text }
  return { ...item, content: [{ ...item.content[0], text }] }
}
