import {
  createHash,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  sign,
  verify,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto'
import type { MasterKey } from '#shared/core/config.ts'
import type { ErasedCounts } from '#shared/accounts/account-erasures.postgres.ts'

/** What a receipt attests. */
export type Receipt = {
  /** The erasure. */
  id: string
  /** The account's id, which said nothing about anybody but here. */
  account: string
  /** SHA-256 in hex of `<id>:<email>`. */
  email_proof: string
  requested_at: string
  finished_at: string
  /** How much of what is gone, from both stores. */
  erased: ErasedCounts & { memories: number; records: number }
  /** What is left: ids of empty vaults, for 400 days, so that late work finds no place. */
  remaining: { empty_vault_ids: number; purged_after_days: number }
}

/** A public key that receipts are checked with: JSON Web Key, Ed25519. */
export type ReceiptKey = JsonWebKey & { kid: string }

type Signer = { kid: string; privateKey: KeyObject; publicKey: ReceiptKey }

/** How an Ed25519 seed is wrapped in PKCS #8. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The same master key always gives the same signer. */
function deriveSigner({ key }: MasterKey): Signer {
  const seed = Buffer.from(hkdfSync('sha256', key, '', 'memory-vault erasure receipts v1', 32))
  const privateKey = createPrivateKey({
    key: Buffer.concat([pkcs8, seed]),
    format: 'der',
    type: 'pkcs8',
  })
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' })
  const kid = createHash('sha256').update(String(jwk.x)).digest('base64url').slice(0, 16)
  return { kid, privateKey, publicKey: { ...jwk, kid, alg: 'EdDSA', use: 'sig' } }
}

/** The keys receipts were ever signed with, as far as their master keys are configured; the first signs. */
export const receiptKeys = (masterKeys: readonly MasterKey[]): ReceiptKey[] =>
  masterKeys.map(key => deriveSigner(key).publicKey)

/** A receipt as a compact JSON Web Signature, which any library for those can check. */
export function signReceipt(masterKeys: readonly MasterKey[], receipt: Receipt): string {
  const { kid, privateKey } = deriveSigner(masterKeys[0]!)
  const head = { alg: 'EdDSA', typ: 'erasure-receipt+jws', kid }
  const signed = [head, receipt]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
}

/** What a receipt says, or undefined when none of these keys has signed it as it is. */
export function verifyReceipt(text: string, keys: readonly ReceiptKey[]): Receipt | undefined {
  const [head = '', body = '', signature = '', ...rest] = text.trim().split('.')
  if (rest.length > 0) return undefined
  try {
    const { kid, alg } = decodePart(head) as { kid?: string; alg?: string }
    const jwk = keys.find(key => key.kid === kid)
    if (!jwk || alg !== 'EdDSA') return undefined
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const signed = Buffer.from(`${head}.${body}`)
    const isGenuine = verify(null, signed, key, Buffer.from(signature, 'base64url'))
    return isGenuine ? (decodePart(body) as Receipt) : undefined
  } catch {
    return undefined
  }
}

const decodePart = (part: string): unknown =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as unknown

/** What shows that an erasure was that of an email, to whoever knows it. */
export const emailProof = (id: string, email: string): string =>
  createHash('sha256').update(`${id}:${email.toLowerCase()}`).digest('hex')
