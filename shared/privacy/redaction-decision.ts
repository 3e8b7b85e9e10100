import type { StoredRedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import { defaultRedactionKinds, type RedactionKind } from '#shared/privacy/detectors.ts'

/** A redaction decision and its origin. */
export type EffectivePolicy = {
  redaction: StoredRedactionPolicy
  decidedBy: 'default' | 'account' | 'organization'
}

export const defaultRedaction: StoredRedactionPolicy = { mode: 'off', kinds: defaultRedactionKinds }

export type RedactionInput = {
  mode: StoredRedactionPolicy['mode']
  kinds?: readonly RedactionKind[] | undefined
}

export const toStoredRedaction = ({
  mode,
  kinds = defaultRedactionKinds,
}: RedactionInput): StoredRedactionPolicy => ({ mode, kinds })
