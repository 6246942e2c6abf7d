# SPDX-License-Identifier: Apache-2.0
"""The report card: what a run of the device tests found, as a page and as JSON.

`plugin` gathers the results of tests, `measure` asks the backend in a process of its own,
`included` reads the results of other runs, `card` puts them together and `page` draws them.
"""

#: Of the card's JSON and of the result files that it includes. Keys are added but never removed;
#: if the meaning of one changes, this number changes.
SCHEMA = 1
