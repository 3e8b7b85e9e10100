import type { StoredRedaction } from '#shared/privacy/redaction-policy.ts'
import { usualKinds, type Kind } from '#shared/privacy/detectors.ts'

/** A decision about private data, and where it comes from. */
export type Policy = { redaction: StoredRedaction; from: 'default' | 'account' | 'organization' }

export const undecided: StoredRedaction = { mode: 'off', kinds: usualKinds }

export type Asked = { mode: StoredRedaction['mode']; kinds?: readonly Kind[] | undefined }

export const decided = ({ mode, kinds = usualKinds }: Asked): StoredRedaction => ({ mode, kinds })
