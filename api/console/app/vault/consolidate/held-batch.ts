import { currentCredential } from '#api/console/app/credential.ts'
import type { CheckedOutBatch } from '#api/contract/generated/types.ts'

/** A reflection as a model proposes it or a person writes it. */
export type Proposal = { text: string; importance: number }

export type ProposalsUpdate = (before: readonly Proposal[]) => readonly Proposal[]

/** What the tab knows of a batch that is lent to it: in memory alone, gone with the tab. */
export type HeldBatch = { batch: CheckedOutBatch; proposals: readonly Proposal[] }

let held: (HeldBatch & { key: string }) | undefined

/** The batch that the credential of this tab has checked out; undefined when its lease has ended. */
export function heldBatch(): HeldBatch | undefined {
  if (!held || held.key !== currentCredential()?.key) return undefined
  return Date.parse(held.batch.lease_expires_at) > Date.now() ? held : undefined
}

/** Keeps a batch while other pages are looked at; undefined forgets it. */
export function holdBatch(batch: HeldBatch | undefined): void {
  const { key } = currentCredential() ?? {}
  held = batch && key !== undefined ? { ...batch, key } : undefined
}
