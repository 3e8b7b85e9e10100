import {
  entropyOf,
  isBrazilianNumber,
  isCardNumber,
  isFrenchNumber,
  isIban,
  isIpv6,
  isPublicIp,
  isSocialSecurityNumber,
  isSpanishNumber,
} from '#shared/privacy/checksums.ts'

/** What should not be remembered, by what it is. */
export const kinds = ['secret', 'card', 'iban', 'national-id', 'email', 'phone', 'ip'] as const
export type Kind = (typeof kinds)[number]

/** What harms whoever wrote it wherever it turns up again; the others are often the point of a memory. */
export const usualKinds: readonly Kind[] = ['secret', 'card', 'iban', 'national-id']

export type Detector = {
  kind: Kind
  /** Global, with flag `d`; of a match the group `it` goes, or all of it. Repetitions are bounded. */
  pattern: RegExp
  /** What looks right and is not, stays. */
  holds?: (found: string) => boolean
}

const secret = (pattern: RegExp, holds?: Detector['holds']): Detector => ({
  kind: 'secret',
  pattern,
  ...(holds && { holds }),
})

/** Of those states that put a check digit into them, or never give out some. */
const nationalId = (pattern: RegExp, holds: (found: string) => boolean): Detector => ({
  kind: 'national-id',
  pattern,
  holds,
})

/** A word somebody would type as a password: long enough, and not of letters alone. */
const isPassword = (text: string): boolean => /[\d\W_]/.test(text) && /[a-z]/i.test(text)

const isRandom = (text: string): boolean => entropyOf(text) > 3.2 && /\d/.test(text)

/** Token forms are those their makers document for secret scanning. */
export const detectors: readonly Detector[] = [
  secret(
    /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]{0,8000}?-----END [A-Z ]{0,30}PRIVATE KEY-----/dg,
  ),
  secret(/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/dg),
  secret(/\bgh[pousr]_[A-Za-z0-9]{36,251}\b/dg),
  secret(/\bgithub_pat_[A-Za-z0-9_]{22,244}\b/dg),
  secret(/\bglpat-[A-Za-z0-9_-]{20,64}/dg),
  secret(/\bsk-(?:ant-|proj-|or-v1-)?[A-Za-z0-9_-]{20,200}/dg, isRandom),
  secret(/\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,200}\b/dg),
  secret(/\bxox[abeoprs]-[A-Za-z0-9-]{10,200}/dg),
  secret(/\bAIza[A-Za-z0-9_-]{35}/dg),
  secret(/\bya29\.[A-Za-z0-9_-]{20,400}/dg),
  secret(/\bnpm_[A-Za-z0-9]{36}\b/dg),
  secret(/\bpypi-[A-Za-z0-9_-]{50,200}/dg),
  secret(/\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}/dg),
  secret(/\bhf_[A-Za-z0-9]{34}\b/dg),
  secret(/\bmk_(?:org_|admin_)?[A-Za-z0-9]{32}\b/dg),
  secret(/\bmk_[A-Za-z0-9_-]{32,64}/dg, isRandom),
  secret(/\bwhsec_[A-Za-z0-9+/_-]{24,120}={0,2}/dg),
  secret(/\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,2000}/dg),
  secret(/\b[a-z][a-z0-9+]{1,20}:\/\/[^\s:/@]{0,64}:(?<it>[^\s:/@]{3,128})@[^\s/]{1,255}/dgi),
  secret(
    /\b(?:api[ _-]?key|access[ _-]?key|secret(?:[ _-]key)?|auth[ _-]?token|token|client[ _-]?secret)["']?\s{0,3}(?:[:=]|is)\s{0,3}["']?(?<it>[A-Za-z0-9+/_.=-]{16,200})/dgi,
    isRandom,
  ),
  secret(
    /\b(?:password|passwort|passwd|passphrase|pwd)["']?\s{0,3}(?::|=|is\b|ist\b)\s{0,3}["']?(?<it>[^\s"',;]{6,100}[^\s"',;.!?])/dgi,
    isPassword,
  ),
  { kind: 'card', pattern: /(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d-])/dg, holds: isCardNumber },
  {
    kind: 'iban',
    pattern: /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b/dg,
    holds: isIban,
  },
  nationalId(/(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])/dg, isSocialSecurityNumber),
  nationalId(/(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-])/dg, isBrazilianNumber),
  nationalId(/(?<![\w-])(?:\d{8}|[XYZ]\d{7})-?[A-HJ-NP-TV-Z](?![\w-])/dg, isSpanishNumber),
  nationalId(
    /(?<![\w.-])[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}(?![\w-])/dg,
    isFrenchNumber,
  ),
  {
    kind: 'email',
    pattern: /[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b/dg,
  },
  {
    kind: 'phone',
    pattern:
      /(?<![\w+])(?:\+\d{1,3}[ .-]?(?:\(\d{1,5}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){1,4}|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4})(?!\w)/dg,
  },
  {
    kind: 'ip',
    pattern: /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)/dg,
    holds: isPublicIp,
  },
  {
    kind: 'ip',
    pattern:
      /(?<![\w:.])(?:[\da-f]{0,4}:){2,7}(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-f]{1,4}|(?<=::))(?!\w|:[\w:])/dgi,
    holds: isIpv6,
  },
]
