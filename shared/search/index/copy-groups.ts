import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'
import { KeyTable } from '#shared/search/columns/key-table.ts'

/** What is read of the records of slots. */
type Records = { textHash(slot: number): number; timeAt(slot: number): number }

/** A copy that takes the place of its removed home. `settle` takes the new slot of the copy. */
type Inheritance = { home: number; heir: number; settle(slot: number): void }

const key = new Uint32Array(2)

/**
 * Groups the slots of a tier by their text. One slot of each text is its home: its words and vector are those of all
 * copies, so that 20,000 copies of a prompt cost a search as much as one.
 */
export class CopyGroups {
  /** Texts by hash; the entry of a text has its home. */
  #texts = new KeyTable(2)
  #homeOfText = new Uint32Array(0)
  #homes = new Uint32Array(0)
  /** The newest slot of each home that has copies. */
  #newest = new Map<number, number>()
  #count = 0

  get bytes(): number {
    return this.#texts.bytes + this.#homeOfText.byteLength + this.#homes.byteLength
  }

  /** Whether any text has copies. */
  get isEmpty(): boolean {
    return this.#newest.size === 0
  }

  /** Number of different texts. */
  get textCount(): number {
    return this.#texts.liveCount
  }

  home(slot: number): number {
    return this.#homes[slot]!
  }

  isCopy(slot: number): boolean {
    return this.#homes[slot] !== slot
  }

  /** The newest slot with the text of a slot; of equal times the last one stored. */
  newest(slot: number): number {
    const home = this.#homes[slot]!
    return this.#newest.get(home) ?? home
  }

  /** Takes a new slot whose record is stored. @returns whether it is a copy */
  add(slot: number, records: Records): boolean {
    this.#homes = ensureCapacity(this.#homes, slot + 1)
    this.#count = slot + 1
    const text = this.#find(slot, records)
    const home = text < 0 ? slot : this.#homeOfText[text]!
    this.#homes[slot] = home
    if (text < 0) this.#addText(slot)
    else this.#noteNewest(home, slot, records)
    return text >= 0
  }

  /**
   * Removes slots. Costs a pass over all slots where one of them has copies.
   *
   * @returns for each home that was removed and has living copies, the newest of them: it must be added again as a new slot
   */
  remove(
    slots: readonly number[],
    records: Records,
    isLive: (slot: number) => boolean,
  ): Inheritance[] {
    const changed = new Set<number>()
    for (const slot of slots) {
      const home = this.#homes[slot]!
      if (this.#newest.has(home)) changed.add(home)
      else this.#texts.drop(this.#find(slot, records))
    }
    if (changed.size === 0) return []
    const members = new Map<number, number[]>(Array.from(changed, home => [home, []]))
    for (let slot = 0; slot < this.#count; slot++)
      if (isLive(slot)) members.get(this.#homes[slot]!)?.push(slot)
    const inheritances: Inheritance[] = []
    for (const [home, group] of members) {
      this.#newest.delete(home)
      if (isLive(home)) {
        for (const slot of group) if (slot !== home) this.#noteNewest(home, slot, records)
        continue
      }
      this.#texts.drop(this.#find(home, records))
      const heir = group.reduce(
        (one, other) => (isNewer(records, other, one) ? other : one),
        group[0] ?? -1,
      )
      if (heir < 0) continue
      const settle = (slot: number): void => {
        for (const other of group) {
          if (other === heir) continue
          this.#homes[other] = slot
          this.#noteNewest(slot, other, records)
        }
      }
      inheritances.push({ home, heir, settle })
    }
    return inheritances
  }

  /** The groups of these slots only, all alive, numbered from 0; `records` are already those of the new numbers. */
  pick(slots: Uint32Array, records: Records): CopyGroups {
    const groups = new CopyGroups()
    const numbers = new Uint32Array(this.#count)
    // Homes first: a home may come after its copies.
    groups.#homes = new Uint32Array(slots.length)
    groups.#count = slots.length
    for (const [number, slot] of slots.entries()) {
      if (this.isCopy(slot)) continue
      numbers[slot] = number
      groups.#homes[number] = number
      groups.#find(number, records)
      groups.#addText(number)
    }
    for (const [number, slot] of slots.entries()) {
      if (!this.isCopy(slot)) continue
      const home = numbers[this.#homes[slot]!]!
      groups.#homes[number] = home
      groups.#noteNewest(home, number, records)
    }
    return groups
  }

  /** Frees unused capacity. */
  trim() {
    this.#texts.trim()
    this.#homeOfText = trimToLength(this.#homeOfText, this.#texts.count)
    this.#homes = trimToLength(this.#homes, this.#count)
  }

  /** The entry of the text of a slot, or -1; its hash is then in `key`. */
  #find(slot: number, records: Records): number {
    const hash = records.textHash(slot)
    key[0] = hash >>> 0
    key[1] = Math.floor(hash / 2 ** 32)
    return this.#texts.find(key)
  }

  /** Adds the text whose hash is in `key`. */
  #addText(home: number) {
    const text = this.#texts.add(key)
    this.#homeOfText = ensureCapacity(this.#homeOfText, text + 1)
    this.#homeOfText[text] = home
  }

  #noteNewest(home: number, slot: number, records: Records) {
    const newest = this.#newest.get(home) ?? home
    this.#newest.set(home, isNewer(records, slot, newest) ? slot : newest)
  }
}

const isNewer = (records: Records, slot: number, other: number): boolean =>
  records.timeAt(slot) > records.timeAt(other) ||
  (records.timeAt(slot) === records.timeAt(other) && slot > other)
