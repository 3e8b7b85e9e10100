import type { VaultClient } from '../client.ts'
import { createQueue, deleteRows, splitText, uploadLines, type Fields } from './long-texts.ts'

/** An item of a conversation and the memories that it is. */
export type StoredItem = { item: Fields; at: number; rows: { id: string }[] }

/** UTF-8 bytes, of which a token has at least one: a memory stays below the 512 tokens of a chunk. */
const partBytesMax = 480
const metadataCharactersMax = 256

/**
 * The items of a conversation as memories of a session of the vault, one after another in time: the words of a
 * message are the text of the memory, what else an item has is metadata. An item without words is stored as JSON.
 *
 * Metadata: `item_of` the kind of items, `item_at` the time of the item, `item_part` and `item_parts`,
 * `item_rest` the JSON of an item without its words.
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
      const { role, parts, rest } = toParts(item)
      return parts.map((content, part) =>
        JSON.stringify({
          content,
          role,
          // A millisecond for each part: equal texts are apart, and the order is that of time.
          timestamp: at++,
          metadata: {
            item_of: this.#kind,
            item_at: first,
            item_part: part,
            item_parts: parts.length,
            ...(rest !== undefined && { item_rest: rest }),
          },
        }),
      )
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

type Parts = { role: 'user' | 'assistant'; parts: string[]; rest?: string }

/** The words of an item that has nothing else of any length, or its JSON in brackets. */
function toParts(item: Fields): Parts {
  const role = item.role === 'user' ? 'user' : 'assistant'
  const words = readWords(item)
  if (words) {
    const parts = splitText(words.text, partBytesMax)
    const rest = JSON.stringify(words.rest)
    const isStorable = rest.length <= metadataCharactersMax
    if (isStorable && parts.every(part => part.trim() !== '')) return { role, parts, rest }
  }
  return { role, parts: splitText(JSON.stringify(item), partBytesMax).map(text => `[${text}]`) }
}

/** The text of an item, as its content or in the only part of that, and the item without it. */
function readWords(item: Fields): { text: string; rest: Fields } | undefined {
  const { content } = item
  if (typeof content === 'string') return { text: content, rest: { ...item, content: null } }
  if (!Array.isArray(content) || content.length !== 1) return undefined
  const [part] = content as [Fields]
  if (typeof part?.text !== 'string') return undefined
  return { text: part.text, rest: { ...item, content: [{ ...part, text: null }] } }
}

function toItem(rows: readonly ItemRow[]): Fields {
  const ordered = [...rows].sort((a, b) => a.metadata.item_part - b.metadata.item_part)
  const rest = ordered[0]!.metadata.item_rest as string | undefined
  if (rest === undefined) {
    return JSON.parse(ordered.map(({ content }) => content.slice(1, -1)).join('')) as Fields
  }
  const text = ordered.map(({ content }) => content).join('')
  const item = JSON.parse(rest) as Fields
  if (item.content === null) return { ...item, content: text }
  return { ...item, content: [{ ...item.content[0], text }] }
}
