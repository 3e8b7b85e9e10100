import { isIPv6 } from 'node:net'

/** Luhn: every payment card number has it, one random number in ten does. */
export function isCardNumber(text: string): boolean {
  const digits = text.replaceAll(/[ -]/g, '')
  if (digits.length < 13 || digits.length > 19 || /^(\d)\1+$/.test(digits)) return false
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = digit * 2
    sum += index % 2 === 0 ? digit : doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** ISO 13616: the country and check digits go last, letters count from 10, the rest modulo 97 is 1. */
export function isIban(text: string): boolean {
  const iban = text.replaceAll(' ', '').toUpperCase()
  if (iban.length < 15 || iban.length > 34) return false
  const turned = iban.slice(4) + iban.slice(0, 4)
  let rest = 0
  for (const sign of turned) {
    const value = Number.parseInt(sign, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}

/** Numbers the Social Security Administration has never given out are none. */
export function isSocialSecurityNumber(text: string): boolean {
  const [area, group, serial] = text.split('-')
  return (
    area !== '000' && area !== '666' && Number(area) < 900 && group !== '00' && serial !== '0000'
  )
}

const controlLetters = 'TRWAGMYFPDXBNJZSQVHLCKE'

/** DNI and NIE of Spain: the letter is the number modulo 23, X, Y and Z count as 0, 1 and 2. */
export function isSpanishNationalId(text: string): boolean {
  const number = text.replace('-', '')
  const digits = number.slice(0, -1).replace(/^[XYZ]/, letter => String('XYZ'.indexOf(letter)))
  return controlLetters[Number(digits) % 23] === number.at(-1)
}

/** CPF of Brazil: two check digits, each over all digits before it. */
export function isBrazilianCpf(text: string): boolean {
  const digits = text.replaceAll(/\D/g, '')
  if (/^(\d)\1+$/.test(digits)) return false
  const checkAfter = (count: number): number => {
    let sum = 0
    for (let index = 0; index < count; index++) sum += Number(digits[index]) * (count + 1 - index)
    return ((sum * 10) % 11) % 10
  }
  return checkAfter(9) === Number(digits[9]) && checkAfter(10) === Number(digits[10])
}

/** NIR of France: two check digits make 97 with the rest; of Corsica 2A counts as 19 and 2B as 18. */
export function isFrenchNir(text: string): boolean {
  const number = text.replaceAll(' ', '').replace('2A', '19').replace('2B', '18')
  return 97n - (BigInt(number.slice(0, 13)) % 97n) === BigInt(number.slice(13))
}

/** Each part of an address in numbers is at most 255; `0.0.0.0` and the loopback name nobody. */
export function isNonLoopbackIpv4(text: string): boolean {
  const parts = text.split('.').map(Number)
  return parts.every(part => part <= 255) && parts[0] !== 0 && parts[0] !== 127
}

/** The ranges in use: global, link-local, unique local, multicast, IPv4 in IPv6. */
const ipv6Ranges =
  /^(?:[23][\da-f]{3}:|fe[89ab][\da-f]:|f[cd][\da-f]{2}:|ff[\da-f]{2}:|::ffff:|64:ff9b:)/i

/** An address of a range that is in use: `a::b` and a time of day are none, and `::1` names nobody. */
export const isAssignedIpv6 = (text: string): boolean => isIPv6(text) && ipv6Ranges.test(text)

/** Bits per character, as its own letters are spread: words have about 3, random keys above 3.5. */
export function shannonEntropy(text: string): number {
  const counts = new Map<string, number>()
  for (const sign of text) counts.set(sign, (counts.get(sign) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) {
    const share = count / text.length
    bits -= share * Math.log2(share)
  }
  return bits
}
