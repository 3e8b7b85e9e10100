/**
 * An email as accounts, members and sign-ins are compared by it: the letters of ASCII in lower case. Others stay as they
 * are, since `toLowerCase` makes a `k` of U+212A, and so one person's email of another's.
 */
export const foldEmail = (email: string): string =>
  email.replace(/[A-Z]+/g, letters => letters.toLowerCase())
