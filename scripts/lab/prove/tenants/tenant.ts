import { createHash, randomUUID } from 'node:crypto'
import type { RequestPlan } from '#scripts/lab/prove/requests/request-plan.ts'
import { pickOne } from '#scripts/lab/prove/section.ts'

export type TenantKind = 'user' | 'owner' | 'admin' | 'member' | 'operator'

/** Ids of one kind that a tenant made and did not end, at most. */
const ownMax = 8

const canaryPattern = /canary[0-9a-f]{8}/g
/** As a request asks: traces of an account repeat it later. */
const questionPattern = /What does canary[0-9a-f]{8} know of the harbour\?/g
/** Questions sent by the tenants of an account, by account. */
const questionsAsked = new Map<string, Set<string>>()

/** The holder of a credential. A word that is unique to the tenant stands in every text and name it sends. */
export class Tenant {
  readonly canary: string
  /** A session that only this tenant has. */
  readonly session: string
  readonly kind: TenantKind
  readonly key: string
  /** Tenants of one account; the keys of its owner and admins may read all of them. */
  readonly account: string
  /** Words of others that its answers may hold. */
  readonly mayRead: Set<string>
  /** Ids by kind that no request of its own changes or ends. */
  readonly kept = new Map<string, string[]>()
  /** Ids by kind that its requests made, and may change and end. */
  readonly #own = new Map<string, string[]>()

  /** @param name the same for the same words: what an index ranks by is no chance */
  constructor(kind: TenantKind, key: string, account: string, name: string) {
    const unique = createHash('sha256').update(`${kind} ${name}`).digest('hex').slice(0, 8)
    this.canary = `canary${unique}`
    this.session = `session ${unique}`
    this.mayRead = new Set([this.canary])
    this.kind = kind
    this.key = key
    this.account = account
  }

  keep(kind: string, ids: readonly string[]): void {
    this.kept.set(kind, [...(this.kept.get(kind) ?? []), ...ids])
  }

  add(kind: string, id: string): void {
    const ids = this.#own.get(kind) ?? []
    if (!this.kept.get(kind)?.includes(id) && !ids.includes(id)) ids.push(id)
    this.#own.set(kind, ids.slice(-ownMax * 2))
  }

  /** Adds what an answer that was 2xx names. */
  addNamed({ keeps }: RequestPlan, text: string): void {
    for (const [kind, id] of keeps?.(JSON.parse(text)) ?? [])
      if (typeof id === 'string') this.add(kind, id)
  }

  /** Whether it has enough of a kind to make no more. */
  isFull(kind: string): boolean {
    return (this.#own.get(kind)?.length ?? 0) >= ownMax
  }

  /** An id that it may change; a missing one where it has none. */
  own(kind: string, random: () => number): string {
    return pickOne(this.#own.get(kind) ?? [], random) ?? randomUUID()
  }

  /** As `own`, and the tenant forgets it. */
  take(kind: string, random: () => number): string {
    const id = this.own(kind, random)
    this.#own.set(
      kind,
      (this.#own.get(kind) ?? []).filter(one => one !== id),
    )
    return id
  }

  /** One of the kept ids; a missing one where it has none. */
  lasting(kind: string, random: () => number): string {
    return pickOne(this.kept.get(kind) ?? [], random) ?? randomUUID()
  }

  /** An id of all it has; a missing one where it has none. */
  any(kind: string, random: () => number): string {
    return pickOne(this.all(kind), random) ?? randomUUID()
  }

  all(kind: string): string[] {
    return [...(this.kept.get(kind) ?? []), ...(this.#own.get(kind) ?? [])]
  }

  /** Adds the questions of a request that the tenant sends. */
  addQuestions(request: string): void {
    const asked = questionsAsked.get(this.account) ?? new Set()
    for (const question of request.match(questionPattern) ?? []) asked.add(question)
    questionsAsked.set(this.account, asked)
  }

  /**
   * Words of other tenants in an answer that this one may not read and has not asked with.
   * A whole question that the account sent before is its own, whatever word it holds.
   */
  foreignWords(answer: string, asked: string): string[] {
    const questions = questionsAsked.get(this.account)
    const told = answer.replaceAll(questionPattern, question =>
      questions?.has(question) ? '' : question,
    )
    return (told.match(canaryPattern) ?? []).filter(
      word => !this.mayRead.has(word) && !asked.includes(word),
    )
  }
}

/** Returns what a tenant may name of another tenant's key to copy to: a part of it, or it without the right to store. */
export const partOfKey = (key: string, random: () => number): string =>
  random() < 0.5 ? `${key}:off` : key.slice(0, 20)
