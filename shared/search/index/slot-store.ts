import type { Memory, Tier } from '#shared/domain/memory.ts'
import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'
import { KeyTable } from '#shared/search/columns/key-table.ts'
import { UuidTable } from '#shared/search/index/uuid-table.ts'
import { MemoryColumns } from '#shared/search/index/memory-columns.ts'
import { deadRow, WordIndex } from '#shared/search/words/word-index.ts'
import { CopyGroups } from '#shared/search/index/copy-groups.ts'

/** Least share and number of dead slots that are freed. */
const compactDeadShare = 1 / 5
const compactDeadMin = 256

/** A test of texts; `number` is its own, from 0 to 15. */
export type TextTest = { number: number; passes: (text: string) => boolean }

/**
 * The memories of a tier without their vectors, in slots in the order of arrival. Inserts and removals renumber rows, not
 * slots, so they rewrite no texts or posting lists.
 */
export class SlotStore {
  readonly #tier: Tier
  #ids = new UuidTable()
  #records = new MemoryColumns()
  #rows = new Uint32Array(0)
  /** Tests of the text of each slot: bit `number` of those that were done, bit `16 + number` of those that it passed. */
  #tests = new Uint32Array(0)
  #copies = new CopyGroups()
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
    const slots = this.#rows.byteLength + this.#tests.byteLength + this.#copies.bytes
    return this.#ids.bytes + this.#records.bytes + this.wordIndex.bytes + slots
  }

  get records(): Omit<MemoryColumns, 'add' | 'copyPiece' | 'pick' | 'trim' | 'bytes'> {
    return this.#records
  }

  /** Which slots have the same text. */
  get copies(): Omit<CopyGroups, 'add' | 'remove' | 'pick' | 'trim'> {
    return this.#copies
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
    if (this.#copies.add(slot, this.#records)) this.wordIndex.addCopy(slot, memory.text)
    else this.wordIndex.add(slot, memory.text)
    this.#rows = ensureCapacity(this.#rows, slot + 1)
    this.#rows[slot] = row
    if (this.#tests.length > 0) this.#tests = ensureCapacity(this.#tests, this.#rows.length)
    return slot
  }

  /**
   * Marks slots as dead: neither their ids nor their words find them any more. Where one stood for its copies, another of
   * them gets a new slot, which stands for them.
   *
   * @returns the rows of those that stood for copies, and of those that stand for them now
   */
  markDead(slots: Iterable<number>): { from: number; to: number; slot: number }[] {
    const rows = this.#rows
    const dead = [...slots]
    const rowOf = new Map(dead.map(slot => [slot, rows[slot]!]))
    for (const slot of dead) this.#drop(slot)
    return this.#copies
      .remove(dead, this.#records, slot => rows[slot] !== deadRow)
      .map(({ home, heir, settle }) => {
        const row = rows[heir]!
        const memory = this.readMemory(heir)
        this.#drop(heir)
        const slot = this.add(memory, row)
        this.#records.copyPiece(heir, slot)
        settle(slot)
        return { from: rowOf.get(home)!, to: row, slot }
      })
  }

  #drop(slot: number) {
    this.#ids.drop(slot)
    this.#rows[slot] = deadRow
    if (this.#copies.isCopy(slot)) this.wordIndex.removeCopy(slot, this.#records.text(slot))
    else this.wordIndex.remove(slot)
    this.#deadCount++
  }

  row(slot: number): number {
    return this.#rows[slot]!
  }

  setRow(slot: number, row: number) {
    this.#rows[slot] = row
  }

  /** Whether the text of a slot passes a test, which is done once for each text. */
  passes(slot: number, { number, passes }: TextTest): boolean {
    if (this.#tests.length === 0) this.#tests = new Uint32Array(this.#rows.length)
    const home = this.#copies.home(slot)
    const known = this.#tests[home]!
    if ((known >>> number) & 1) return ((known >>> (16 + number)) & 1) === 1
    const isPassed = passes(this.#records.text(home))
    this.#tests[home] = known | (1 << number) | ((isPassed ? 1 : 0) << (16 + number))
    return isPassed
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

  /** Frees dead slots once they are many, or all. @returns whether slots have new numbers */
  compact(all = false): boolean {
    const { count } = this.#records
    const isDue = this.#deadCount >= compactDeadMin && this.#deadCount >= count * compactDeadShare
    if (!isDue && !(all && this.#deadCount > 0)) return false
    const rows = this.#rows
    const slots = Uint32Array.from({ length: count }, (_, slot) => slot)
    const liveSlots = slots.filter(slot => rows[slot] !== deadRow)
    this.#ids = this.#ids.pick(liveSlots)
    this.#records = this.#records.pick(liveSlots)
    this.wordIndex.pick(liveSlots)
    this.#copies = this.#copies.pick(liveSlots, this.#records)
    this.#rows = liveSlots.map(slot => rows[slot]!)
    this.#tests = new Uint32Array(0)
    this.#deadCount = 0
    return true
  }

  /** What `restore` takes; no slot is dead. */
  save() {
    return {
      ids: this.#ids.save(),
      records: this.#records.save(),
      rows: this.#rows.subarray(0, this.#records.count),
      copies: this.#copies.save(),
      words: this.wordIndex.save(),
    }
  }

  restore({ ids, records, rows, copies, words }: ReturnType<SlotStore['save']>) {
    this.#ids = new UuidTable(new KeyTable(4).restore(ids))
    this.#records = MemoryColumns.restore(records)
    this.#rows = rows
    this.#copies.restore(copies)
    this.wordIndex.restore(words)
  }

  /** Frees unused capacity. */
  trim() {
    this.#ids.trim()
    this.#records.trim()
    this.wordIndex.trim()
    this.#copies.trim()
    this.#rows = trimToLength(this.#rows, this.#records.count)
    this.#tests = new Uint32Array(0)
  }
}
