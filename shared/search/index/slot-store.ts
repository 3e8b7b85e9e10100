import type { Memory, Tier } from '#shared/domain/memory.ts'
import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'
import { UuidTable } from '#shared/search/index/uuid-table.ts'
import { MemoryColumns } from '#shared/search/index/memory-columns.ts'
import { WordIndex } from '#shared/search/words/word-index.ts'

/** The row of a dead slot. */
const deadRow = 0xffffffff

/** Dead slots stay until they are this share of all, and this many. */
const compactDeadShare = 1 / 5
const compactDeadMin = 256

/**
 * The memories of a tier without their vectors, in slots in the order of arrival. Rows are
 * renumbered by inserts and removals, slots are not, so neither rewrites texts or posting lists.
 */
export class SlotStore {
  readonly #tier: Tier
  #ids = new UuidTable()
  #records = new MemoryColumns()
  #rows = new Uint32Array(0)
  #deadCount = 0
  readonly wordIndex: WordIndex

  constructor(tier: Tier, termsOf: (text: string) => string[], packLater = false) {
    this.#tier = tier
    this.wordIndex = new WordIndex({ termsOf, rowBySlot: () => this.#rows, packLater })
  }

  /** Slots in use, dead ones included. */
  get count(): number {
    return this.#records.count
  }

  get bytes(): number {
    return this.#ids.bytes + this.#records.bytes + this.wordIndex.bytes + this.#rows.byteLength
  }

  /** The fields of memories by slot. */
  get records(): Omit<MemoryColumns, 'add' | 'pick' | 'trim' | 'bytes'> {
    return this.#records
  }

  /** Returns the slot of an id, or -1. */
  find(id: string): number {
    return this.#ids.find(id)
  }

  id(slot: number): string {
    return this.#ids.id(slot)
  }

  /** Stores a memory, which is at `row`, in a new slot, and returns the slot. */
  add(memory: Memory, row: number): number {
    const slot = this.#ids.add(memory.id)
    this.#records.add(memory)
    this.wordIndex.add(slot, memory.text)
    this.#rows = ensureCapacity(this.#rows, slot + 1)
    this.#rows[slot] = row
    return slot
  }

  /** Marks a slot as dead: neither its id nor its words find it any more. */
  markDead(slot: number) {
    this.#ids.drop(slot)
    this.#rows[slot] = deadRow
    this.wordIndex.remove(slot)
    this.#deadCount++
  }

  row(slot: number): number {
    return this.#rows[slot]!
  }

  setRow(slot: number, row: number) {
    this.#rows[slot] = row
  }

  /** Decodes the text. */
  readMemory(slot: number): Memory {
    const records = this.#records
    const importance = records.importance(slot)
    const speaker = records.speaker(slot)
    const expiresAt = records.expiresAt(slot)
    const metadata = records.metadata(slot)
    return {
      id: this.#ids.id(slot),
      tier: this.#tier,
      role: records.role(slot),
      text: records.text(slot),
      at: records.timeAt(slot),
      tokens: records.tokens(slot),
      ...(importance !== undefined && { importance }),
      ...(speaker !== undefined && { speaker }),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(metadata !== undefined && { metadata }),
      ...records.tagsAndAuthor(slot),
    }
  }

  /** Frees dead slots once they are many; true when slots have new numbers. */
  compact(): boolean {
    const { count } = this.#records
    if (this.#deadCount < compactDeadMin || this.#deadCount < count * compactDeadShare) return false
    const rows = this.#rows
    const slots = Uint32Array.from({ length: count }, (_, slot) => slot)
    const liveSlots = slots.filter(slot => rows[slot] !== deadRow)
    this.#ids = this.#ids.pick(liveSlots)
    this.#records = this.#records.pick(liveSlots)
    this.wordIndex.pick(liveSlots)
    this.#rows = liveSlots.map(slot => rows[slot]!)
    this.#deadCount = 0
    return true
  }

  /** Frees unused capacity. */
  trim() {
    this.#ids.trim()
    this.#records.trim()
    this.wordIndex.trim()
    this.#rows = trimToLength(this.#rows, this.#records.count)
  }
}
