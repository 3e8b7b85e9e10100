import { builtInProviders, type ProviderApi } from '#shared/core/provider-registry.ts'
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

/** How a language names a password, and what stands between that name and the password itself. */
type PasswordWords = {
  words: readonly string[]
  /** Verbs and particles, beside a colon, an equals sign and a dash. */
  links: readonly string[]
  /** Whether nothing but a space may stand between them. */
  isBare?: true
}

/**
 * By BCP 47 language. The words are those of Django's translations of its sign-in form
 * (`django/contrib/auth/locale`, message "Password"), with their everyday synonyms.
 */
const passwordWords: Readonly<Record<string, PasswordWords>> = {
  en: { words: ['password', 'passwd', 'passphrase', 'passcode', 'pwd', '_pass'], links: ['is'] },
  de: { words: ['passwort', 'kennwort'], links: ['ist', 'lautet'] },
  fr: { words: ['mot de passe'], links: ['est', 'c’est', "c'est"] },
  es: { words: ['contraseña', 'clave'], links: ['es'] },
  ca: { words: ['contrasenya'], links: ['és'] },
  pt: { words: ['senha', 'palavra-passe'], links: ['é'] },
  it: { words: ['password', 'parola d’ordine', "parola d'ordine"], links: ['è'] },
  nl: { words: ['wachtwoord'], links: ['is'] },
  sv: { words: ['lösenord', 'lösenordet'], links: ['är'] },
  da: { words: ['adgangskode', 'adgangskoden'], links: ['er'] },
  nb: { words: ['passord', 'passordet'], links: ['er'] },
  fi: { words: ['salasana', 'salasanani'], links: ['on'] },
  pl: { words: ['hasło'], links: ['to', 'jest'] },
  cs: { words: ['heslo'], links: ['je'] },
  hu: { words: ['jelszó', 'jelszavam'], links: [], isBare: true },
  ro: { words: ['parolă', 'parola'], links: ['este', 'e'] },
  tr: { words: ['parola', 'parolam', 'şifre', 'şifrem'], links: [], isBare: true },
  ru: { words: ['пароль'], links: ['это'], isBare: true },
  uk: { words: ['пароль'], links: ['це'], isBare: true },
  el: { words: ['συνθηματικό', 'κωδικός'], links: ['είναι'] },
  he: { words: ['סיסמה', 'הסיסמה'], links: ['היא'], isBare: true },
  ar: { words: ['كلمة المرور', 'كلمة السر'], links: ['هي'], isBare: true },
  fa: { words: ['گذرواژه', 'رمز عبور'], links: [], isBare: true },
  hi: { words: ['पासवर्ड'], links: ['है'], isBare: true },
  zh: { words: ['密码', '密碼', '口令'], links: ['是', '为', '為'], isBare: true },
  ja: { words: ['パスワード'], links: ['は', 'が'], isBare: true },
  ko: { words: ['비밀번호', '비밀번호는', '암호'], links: ['는', '은'], isBare: true },
  th: { words: ['รหัสผ่าน'], links: ['คือ'], isBare: true },
  vi: { words: ['mật khẩu'], links: ['là'] },
  id: { words: ['kata sandi'], links: ['adalah'], isBare: true },
}

const alternatives = (texts: readonly string[]): string => texts.map(RegExp.escape).join('|')

/** What may stand between a name and its value; a link of cased letters is a word of its own. */
function jointsOf({ links, isBare }: PasswordWords): string {
  const cased = links.filter(link => /\p{Ll}/u.test(link))
  const uncased = links.filter(link => !cased.includes(link))
  return [
    String.raw`:=|=>|[:=>\uff1a]|[-\u2013\u2014]\s`,
    ...(cased.length > 0 ? [String.raw`(?:${alternatives(cased)})(?!\p{L})`] : []),
    ...(uncased.length > 0 ? [alternatives(uncased)] : []),
    ...(isBare ? [String.raw`(?<=\s)`] : []),
  ].join('|')
}

const namedValues = Object.values(passwordWords).map(
  row => String.raw`(?:${alternatives(row.words)})\\?["'\x60]?\s{0,3}(?:${jointsOf(row)})`,
)

/** Cased letters, digits and signs: letters without case follow a password without a space. */
const otherCharacters = String.raw`\s"'\x60,;<\p{Lo}\p{M}\u3000-\u303f\uff00-\uff0f`

/** A password behind its name, in the group `it`. Anything may stand before the name: `DB_PASSWORD`. */
const namedPassword = new RegExp(
  String.raw`(?:${namedValues.join('|')})\s{0,3}\\?["'\x60]?(?<it>[^${otherCharacters}]{6,100}[^${otherCharacters}.!?])`,
  'dgiu',
)

/** Kinds of private data. */
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

/**
 * Kinds that harm their owner wherever they reappear; the others are often the point of a memory.
 */
export const defaultRedactionKinds: readonly RedactionKind[] = [
  'secret',
  'card',
  'iban',
  'national-id',
]

export type Detector = {
  kind: RedactionKind
  /**
   * Global, with flag `d`. The group `it` is redacted, or the whole match. Repetitions are bounded. What many
   * texts hold without end, such as letters before an `@`, is read backwards from what is rare, into the group
   * `head`: the match then begins with it. Read forwards, each character begins a search that fails.
   */
  pattern: RegExp
  /** How much of a match is what is looked for: 0 when nothing is. All of it, without this. */
  validLength?: (match: string) => number
}

/** A match that fails a check stays. */
const whole =
  (isValid: (match: string) => boolean) =>
  (match: string): number =>
    isValid(match) ? match.length : 0

const secretDetector = (pattern: RegExp, isValid?: (match: string) => boolean): Detector => ({
  kind: 'secret',
  pattern,
  ...(isValid && { validLength: whole(isValid) }),
})

/** Ids of states that use check digits, or never issue some numbers. */
const nationalIdDetector = (pattern: RegExp, isValid: (match: string) => boolean): Detector => ({
  kind: 'national-id',
  pattern,
  validLength: whole(isValid),
})

/** Looks like a password: not of letters alone, and not without any. */
const looksLikePassword = (text: string): boolean =>
  /[^\p{L}\p{M}]/u.test(text) && /\p{L}/u.test(text)

const looksRandom = (text: string): boolean => shannonEntropy(text) > 3.2 && /\d/.test(text)

/** Keys of the built-in providers. Behind an underscore come letters and digits only: names of code have more. */
const providerKeys = new RegExp(
  String.raw`\b(?:${Object.values<ProviderApi>(builtInProviders)
    .flatMap(({ keyPrefix }) => keyPrefix ?? [])
    .map(
      prefix => RegExp.escape(prefix) + (prefix.endsWith('_') ? '[A-Za-z0-9]' : String.raw`[\w-]`),
    )
    .join('{20,200}|')}{20,200})`,
  'dg',
)

/** Besides private keys. Token forms are those that their issuers document for secret scanning. */
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
  // RFC 9110, 11.6.2: credentials behind the name of a scheme.
  secretDetector(
    /\bauthorization\\?["'`]?\s{0,3}[:=,]\s{0,3}\\?["'`]?[a-z]{3,20}\s{1,3}(?<it>[A-Za-z0-9._~+/=-]{8,2000})/dgi,
  ),
  secretDetector(/\bbearer\s{1,3}(?<it>[A-Za-z0-9._~+/=-]{16,2000})/dgi, looksRandom),
  // Whatever stands before the name: GITHUB_TOKEN, accessToken, aws_secret_access_key.
  secretDetector(
    /(?:(?:api|access|secret|private)[ _-]?key|secret|token)\\?["'`]?\s{0,3}(?::=|=>|[:=>]|is)\s{0,3}\\?["'`]?(?<it>[A-Za-z0-9+/_.=-]{16,200})/dgi,
    looksRandom,
  ),
  secretDetector(namedPassword, looksLikePassword),
  {
    kind: 'card',
    pattern: /(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d-])/dg,
    validLength: whole(isCardNumber),
  },
  {
    // Grouped as cards show it, whatever number stands beside it: an expiry date reads like more of the card.
    kind: 'card',
    pattern:
      /(?<![\d.-])(?=[3-68]|2[2-7])(?=(?<it>\d{13,19}|\d{4}(?:[\s.-]{1,3}\d{4}){3}|\d{4}[\s.-]{1,3}\d{6}[\s.-]{1,3}\d{4,5})(?!\d))/dg,
    validLength: whole(isCardNumber),
  },
  {
    kind: 'iban',
    // Ahead, so that a word that reads like the beginning of one hides none behind it.
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
