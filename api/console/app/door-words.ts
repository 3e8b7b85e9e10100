/** What the form for signing in says, before the console is loaded and after. */
export const doorWords = {
  description:
    'Look into a vault with its Memory Key, or look after a team with an admin credential.',
  hint: 'Kept by the open tabs of the console until you sign out. It is sent to this service alone.',
}
