import rows from '#shared/privacy/detectors.json' with { type: 'json' }
import { builtInProviders, type ProviderApi } from '#shared/core/provider-registry.ts'
import passwordWords from '#shared/privacy/password-words.json' with { type: 'json' }
import {
  ibanLength,
  isAssignedIpv6,
  isBrazilianCpf,
  isCardNumber,
  isFrenchNir,
  isNonLoopbackIpv4,
  isSocialSecurityNumber,
  isSpanishNationalId,
  shannonEntropy,
} from '#shared/privacy/checksums.ts'

/** The names of a password in one language, and what stands between a name and the password. */
type PasswordWords = {
  words: string[]
  /** Verbs and particles, besides a colon, an equals sign and a dash. */
  links: string[]
  /** Whether a space alone may stand between them. */
  isBare?: boolean
}

const alternatives = (texts: readonly string[]): string => texts.map(RegExp.escape).join('|')

/** A link of cased letters is a word of its own. */
function jointsOf({ links, isBare }: PasswordWords): string {
  const cased = links.filter(link => /\p{Ll}/u.test(link))
  const uncased = links.filter(link => !cased.includes(link))
  return [
    String.raw`:=|=>|[:=>|\uff1a]|[-\u2013\u2014]\s`,
    ...(cased.length > 0 ? [String.raw`(?:${alternatives(cased)})(?!\p{L})`] : []),
    ...(uncased.length > 0 ? [alternatives(uncased)] : []),
    ...(isBare ? [String.raw`(?<=\s)`] : []),
  ].join('|')
}

const namedValues = Object.values<PasswordWords>(passwordWords.languages).map(
  row => String.raw`(?:${alternatives(row.words)})\\?["'\x60]?\s{0,3}(?:${jointsOf(row)})`,
)

/** Cased letters, digits and signs: letters without case follow a password without a space. */
const otherCharacters = String.raw`\s"'\x60,;<\p{Lo}\p{M}\u3000-\u303f\uff00-\uff0f`

/** A password after its name, in the group `it`. Anything may precede the name: `DB_PASSWORD`. */
const namedPassword = new RegExp(
  String.raw`(?:${namedValues.join('|')})\s{0,3}\\?["'\x60]?(?<it>[^${otherCharacters}]{6,100}[^${otherCharacters}.!?])`,
  'dgiu',
)

export const redactionKinds = [
  'secret',
  'card',
  'iban',
  'national-id',
  'email',
  'phone',
  'ip',
] as const
export type RedactionKind = (typeof redactionKinds)[number]

/** Kinds that harm their owner wherever they reappear; the others are often the point of a memory. */
export const defaultRedactionKinds: readonly RedactionKind[] = [
  'secret',
  'card',
  'iban',
  'national-id',
]

export type Detector = {
  kind: RedactionKind
  /**
   * Global, with flag `d` and bounded repetitions. The group `it` is redacted, or the whole match. Frequent parts, such
   * as letters before an `@`, are read backwards from a rare one into the group `head`, where the match then begins:
   * read forwards, each character would begin a search that fails.
   */
  pattern: RegExp
  /** The length of the private data in a match: 0 for none. All of it, when missing. */
  validLength?: (match: string) => number
}

const whole =
  (isValid: (match: string) => boolean) =>
  (match: string): number =>
    isValid(match) ? match.length : 0

/** A password has letters and other characters. */
const looksLikePassword = (text: string): boolean =>
  /[^\p{L}\p{M}]/u.test(text) && /\p{L}/u.test(text)

const looksRandom = (text: string): boolean => shannonEntropy(text) > 3.2 && /\d/.test(text)

/** Keys of the built-in providers. After an underscore only letters and digits follow: names in code have more. */
const providerKeys = new RegExp(
  String.raw`\b(?:${Object.values<ProviderApi>(builtInProviders)
    .flatMap(({ keyPrefix }) => keyPrefix ?? [])
    .map(
      prefix => RegExp.escape(prefix) + (prefix.endsWith('_') ? '[A-Za-z0-9]' : String.raw`[\w-]`),
    )
    .join('{20,200}|')}{20,200})`,
  'dg',
)

/** Patterns that are built from other tables, and what tells private data from other matches. */
const namedPatterns: Record<string, RegExp> = { providerKeys, namedPassword }
const checks: Record<string, (match: string) => boolean> = {
  looksLikePassword,
  looksRandom,
  isAssignedIpv6,
  isBrazilianCpf,
  isCardNumber,
  isFrenchNir,
  isNonLoopbackIpv4,
  isSocialSecurityNumber,
  isSpanishNationalId,
}

/** By `detectors.json`, without private keys. Token forms are those that their issuers document for secret scanning. */
export const detectors: readonly Detector[] = rows.map(
  ({ kind, named, pattern, flags, check }) => ({
    kind: kind as RedactionKind,
    pattern: named ? namedPatterns[named]! : new RegExp(pattern!, flags),
    ...(check && { validLength: check === 'ibanLength' ? ibanLength : whole(checks[check]!) }),
  }),
)
