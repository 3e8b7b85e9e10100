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

/**
 * The length of the longest beginning of a text that is an account number of ISO 13616 and ends with a group, or 0, in
 * one pass. With the country and check digits last and letters from 10, the number modulo 97 is 1. In lower case it has
 * eight digits or more: fewer are words after a number. `isIBAN` of validator refuses registered countries such as Libya.
 *
 * @param text letters and digits of ASCII, with separators
 */
export function ibanLength(text: string): number {
  let [rest, length, digits, head, headWeight, found] = [0, 0, 0, 0, 1, 0]
  let isLower = false
  for (let at = 0; at < text.length && length < 34; at++) {
    const code = text.charCodeAt(at)
    if (isSeparator(code)) continue
    const isDigit = code <= 0x39
    if (isDigit) digits++
    else if (code >= 0x61) isLower = true
    const value = isDigit ? code - 0x30 : (code & 0x5f) - 55
    const weight = isDigit ? 10 : 100
    if (length++ < 4) {
      head = head * weight + value
      headWeight *= weight
    } else rest = (rest * weight + value) % 97
    if (length < 15 || (isLower && digits < 8)) continue
    const isEnd = at + 1 === text.length || isSeparator(text.charCodeAt(at + 1))
    if (isEnd && (rest * headWeight + head) % 97 === 1) found = at + 1
  }
  return found
}

const isSeparator = (code: number): boolean => code < 0x30 || code > 0x7a

/** Excludes numbers that are never issued. */
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

/** NIR of France: two check digits make 97 with the rest; 2A of Corsica counts as 19, 2B as 18. Not in validator. */
export function isFrenchNir(text: string): boolean {
  const number = text.replaceAll(' ', '').replace('2A', '19').replace('2B', '18')
  return 97n - (BigInt(number.slice(0, 13)) % 97n) === BigInt(number.slice(13))
}

/** `0.0.0.0/8` and loopback addresses are not personal. */
export function isNonLoopbackIpv4(text: string): boolean {
  const parts = text.split('.').map(Number)
  return parts.every(part => part <= 255) && parts[0] !== 0 && parts[0] !== 127
}

/** Global, link-local, unique local, multicast, IPv4 in IPv6. */
const ipv6Ranges =
  /^(?:[23][\da-f]{3}:|fe[89ab][\da-f]:|f[cd][\da-f]{2}:|ff[\da-f]{2}:|::ffff:|64:ff9b:)/i

/** An address of a range in use, unlike `a::b`, a time of day and `::1`. */
export const isAssignedIpv6 = (text: string): boolean => isIPv6(text) && ipv6Ranges.test(text)

/** Bits per character, by the text's own letters: words have about 3, random keys above 3.5. */
export function shannonEntropy(text: string): number {
  const shares = Object.values(Object.groupBy(text, character => character)).map(
    group => group!.length / text.length,
  )
  return shares.reduce((bits, share) => bits - share * Math.log2(share), 0)
}
