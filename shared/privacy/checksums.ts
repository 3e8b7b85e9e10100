import { isIPv6 } from 'node:net'
import identityCard from 'validator/lib/isIdentityCard.js'
import luhn from 'validator/lib/isLuhnNumber.js'
import taxId from 'validator/lib/isTaxID.js'

/** Luhn: every payment card number passes, and one random number in ten. */
export function isCardNumber(text: string): boolean {
  const digits = text.replaceAll(/[\s.-]/g, '')
  if (digits.length < 13 || digits.length > 19 || /^(\d)\1+$/.test(digits)) return false
  return luhn.default(digits)
}

/** Fewer are words behind a number: of the registered forms of an IBAN the shortest has thirteen. */
const hasEightDigits = /(?:\d\D{0,40}){8}/

/**
 * ISO 13616: the country and check digits go last, letters count from 10, the rest modulo 97 is 1. Not
 * `isIBAN` of validator: it refuses registered countries, such as Libya, Honduras and Yemen.
 */
export function isIban(text: string): boolean {
  const iban = text.replaceAll(/[\s.-]/g, '').toUpperCase()
  if (iban.length < 15 || iban.length > 34) return false
  if (/[a-z]/.test(text) && !hasEightDigits.test(text)) return false
  const rearranged = iban.slice(4) + iban.slice(0, 4)
  let rest = 0
  for (let at = 0; at < rearranged.length; at++) {
    const code = rearranged.charCodeAt(at)
    const value = code - (code > 0x39 ? 55 : 48)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}

/** Excludes numbers that the Social Security Administration never issues. */
export function isSocialSecurityNumber(text: string): boolean {
  const [area, group, serial] = text.split('-')
  return (
    area !== '000' && area !== '666' && Number(area) < 900 && group !== '00' && serial !== '0000'
  )
}

/** DNI and NIE of Spain: the letter is the number modulo 23, X, Y and Z count as 0, 1 and 2. */
export const isSpanishNationalId = (text: string): boolean =>
  identityCard.default(text.replace('-', ''), 'ES')

/** CPF of Brazil: two check digits, each over all digits before it. */
export const isBrazilianCpf = (text: string): boolean => taxId.default(text, 'pt-BR')

/**
 * NIR of France: two check digits make 97 with the rest; of Corsica 2A counts as 19 and 2B as 18.
 * validator does not know it (its `fr-FR` is the tax number).
 */
export function isFrenchNir(text: string): boolean {
  const number = text.replaceAll(' ', '').replace('2A', '19').replace('2B', '18')
  return 97n - (BigInt(number.slice(0, 13)) % 97n) === BigInt(number.slice(13))
}

/** Each part is at most 255; `0.0.0.0/8` and loopback addresses are not personal. */
export function isNonLoopbackIpv4(text: string): boolean {
  const parts = text.split('.').map(Number)
  return parts.every(part => part <= 255) && parts[0] !== 0 && parts[0] !== 127
}

/** The ranges in use: global, link-local, unique local, multicast, IPv4 in IPv6. */
const ipv6Ranges =
  /^(?:[23][\da-f]{3}:|fe[89ab][\da-f]:|f[cd][\da-f]{2}:|ff[\da-f]{2}:|::ffff:|64:ff9b:)/i

/** An address of a range in use: `a::b`, a time of day and `::1` are not personal. */
export const isAssignedIpv6 = (text: string): boolean => isIPv6(text) && ipv6Ranges.test(text)

/** Bits per character, by the text's own letters: words have about 3, random keys above 3.5. */
export function shannonEntropy(text: string): number {
  const counts = new Map<string, number>()
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) {
    const share = count / text.length
    bits -= share * Math.log2(share)
  }
  return bits
}
