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

const secretDetector = (pattern: RegExp, isValid?: (match: string) => boolean): Detector => ({
  kind: 'secret',
  pattern,
  ...(isValid && { validLength: whole(isValid) }),
})

const nationalIdDetector = (pattern: RegExp, isValid: (match: string) => boolean): Detector => ({
  kind: 'national-id',
  pattern,
  validLength: whole(isValid),
})

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

/** Without private keys. Token forms are those that their issuers document for secret scanning. */
export const detectors: readonly Detector[] = [
  secretDetector(/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/dg),
  secretDetector(/\bgh[pousr]_[A-Za-z0-9]{36,251}\b/dg),
  secretDetector(/\bgithub_pat_[A-Za-z0-9_]{22,244}\b/dg),
  secretDetector(/\bglpat-[A-Za-z0-9_-]{20,64}/dg),
  secretDetector(/\bsk-[A-Za-z0-9_-]{20,200}/dg, looksRandom),
  secretDetector(providerKeys, looksRandom),
  secretDetector(/\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,200}\b/dg),
  secretDetector(/\bxox[abeoprs]-[A-Za-z0-9-]{10,200}/dg),
  secretDetector(/\bya29\.[A-Za-z0-9_-]{20,400}/dg),
  secretDetector(/\bnpm_[A-Za-z0-9]{36}\b/dg),
  secretDetector(/\bpypi-[A-Za-z0-9_-]{50,200}/dg),
  secretDetector(/\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}/dg),
  secretDetector(/\bhf_[A-Za-z0-9]{34}\b/dg),
  secretDetector(/\bmk_(?:org_|admin_)?[A-Za-z0-9]{32}\b/dg),
  secretDetector(/\bmk_[A-Za-z0-9_-]{32,64}/dg, looksRandom),
  secretDetector(/\bwhsec_[A-Za-z0-9+/_-]{24,120}={0,2}/dg),
  secretDetector(
    /\.eyJ(?<=(?<head>\beyJ[A-Za-z0-9_-]{10,2000})\.eyJ)[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,2000}/dg,
  ),
  secretDetector(
    /\b[a-z][a-z0-9+]{1,20}:\/\/[^\s:/@]{0,64}:(?<it>[^\s:/@]{3,128})@[^\s/]{1,255}/dgi,
  ),
  // RFC 9110, 11.6.2: credentials after the name of a scheme.
  secretDetector(
    /\bauthorization\\?["'`]?\s{0,3}[:=,]\s{0,3}\\?["'`]?[a-z]{3,20}\s{1,3}(?<it>[A-Za-z0-9._~+/=-]{8,2000})/dgi,
  ),
  secretDetector(/\bbearer\s{1,3}(?<it>[A-Za-z0-9._~+/=-]{16,2000})/dgi, looksRandom),
  // Anything may precede the name: GITHUB_TOKEN, accessToken, aws_secret_access_key.
  secretDetector(
    /(?:(?:api|access|account|secret|private)[ _-]?key|secret|token)\\?["'`]?\s{0,3}(?::=|=>|[:=>]|is)\s{0,3}\\?["'`]?(?<it>[A-Za-z0-9+/_.=-]{16,200})/dgi,
    looksRandom,
  ),
  secretDetector(namedPassword, looksLikePassword),
  // In command lines, as the programs document it: --db-password it, mysql -pit, curl -u name:it.
  secretDetector(
    /(?:--[a-z-]{0,30}pass(?:word|wd|phrase)?\s{1,3}|\b(?:mysql\w{0,9}|mariadb[\w-]{0,9})\s(?:[^\n|;&]{0,80}?\s)?-p)["']?(?<it>[^\s"']{6,100})/dgi,
    looksLikePassword,
  ),
  secretDetector(
    /\bcurl\s(?:[^\n|;&]{0,80}?\s)?(?:-u|--user)[ =]{0,3}["']?[^\s:"']{1,64}:(?<it>[^\s"']{3,128})/dg,
  ),
  {
    kind: 'card',
    pattern: /(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d-])/dg,
    validLength: whole(isCardNumber),
  },
  {
    // Grouped as on cards; an expiry date next to it reads like more of the number.
    kind: 'card',
    pattern:
      /(?<![\d.-])(?=[3-68]|2[2-7])(?=(?<it>\d{13,19}|\d{4}(?:[\s.-]{1,3}\d{4}){3}|\d{4}[\s.-]{1,3}\d{6}[\s.-]{1,3}\d{4,5})(?!\d))/dg,
    validLength: whole(isCardNumber),
  },
  {
    kind: 'iban',
    // A lookahead: a word that reads like the beginning of one must not hide the next.
    pattern:
      /\b(?=[A-Z]{2}\d{2})(?=(?<it>[A-Z0-9]{4}(?:[\s.-]{0,3}[A-Z0-9]{4}){2,7}(?:[\s.-]{0,3}[A-Z0-9]{1,3})?\b))/dgi,
    validLength: ibanLength,
  },
  nationalIdDetector(/(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])/dg, isSocialSecurityNumber),
  nationalIdDetector(/(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-])/dg, isBrazilianCpf),
  nationalIdDetector(
    /(?<![\w-])(?:\d{8}|[XYZ]\d{7})-?[A-HJ-NP-TV-Z](?![\w-])/dg,
    isSpanishNationalId,
  ),
  nationalIdDetector(
    /(?<![\w.-])[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}(?![\w-])/dg,
    isFrenchNir,
  ),
  {
    kind: 'email',
    pattern:
      /@(?<=(?<head>[A-Za-z0-9._%+-]{1,64})@)(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b/dg,
  },
  {
    kind: 'phone',
    pattern:
      /(?<![\w+])(?:\+\d{1,3}[ .-]?(?:\(\d{1,5}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){1,4}|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4})(?!\w)/dg,
  },
  {
    kind: 'ip',
    pattern: /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)/dg,
    validLength: whole(isNonLoopbackIpv4),
  },
  {
    kind: 'ip',
    pattern:
      /(?<![\w:.])(?:[\da-f]{0,4}:){2,7}(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-f]{1,4}|(?<=::))(?!\w|:[\w:])/dgi,
    validLength: whole(isAssignedIpv6),
  },
]
