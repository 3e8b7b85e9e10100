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
export const namedPassword = new RegExp(
  String.raw`(?:${namedValues.join('|')})\s{0,3}\\?["'\x60]?(?<it>[^${otherCharacters}]{6,100}[^${otherCharacters}.!?])`,
  'dgiu',
)
