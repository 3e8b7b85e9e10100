import type { VaultClient } from '../client.ts'
import { deleteRows, splitText, uploadLines, type Fields } from './long-texts.ts'

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
  #last = 0

  constructor(vault: VaultClient, session: string, kind: string) {
    this.#vault = vault
    this.#session = session
    this.#kind = kind
  }

  async add(items: readonly Fields[]): Promise<void> {
    if (items.length === 0) return
    // After what is there, also where clocks of machines differ.
    const [newest] = await this.read(1)
    let at = Math.max(Date.now(), this.#last + 1, (newest?.at ?? 0) + 1)
    const lines = items.flatMap(item => {
      const first = at
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
    await uploadLines(this.#vault, lines, this.#session)
    this.#last = at
  }

  /** The items whose parts are all there, oldest first; with a limit the newest of them. */
  async read(limit = Infinity): Promise<StoredItem[]> {
    const parts = new Map<number, { id: string; content: string; metadata: Fields }[]>()
    const isWhole = (rows: { metadata: Fields }[]) => rows.length === rows[0]?.metadata.item_parts
    let to: string | undefined = '9999-12-31'
    while (to !== undefined && [...parts.values()].filter(isWhole).length < limit) {
      const page = await this.#page(to, Math.min(200_000, limit * 500))
      for (const { id, content, metadata = {} } of page.memories) {
        const at = Number(metadata.item_at)
        parts.set(at, [...(parts.get(at) ?? []), { id, content, metadata }])
      }
      to = page.truncated ? page.returned.from : undefined
    }
    return [...parts]
      .filter(([, rows]) => isWhole(rows))
      .sort(([a], [b]) => a - b)
      .slice(limit === Infinity ? 0 : -limit)
      .map(([at, rows]) => ({ item: toItem(rows), at, rows }))
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

function toItem(rows: { content: string; metadata: Fields }[]): Fields {
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
