/** Adds up the numbers among the codes of a nested order. Whether a code is a number, Integer.parseInt knows best. */
public class Main {
    private static long add(String[] codes, int depth) {
        if (depth > 0) {
            return add(codes, depth - 1);
        }
        long sum = 0;
        for (int round = 0; round < 5000; round++) {
            for (String code : codes) {
                sum += number(code);
            }
        }
        return sum;
    }

    private static int number(String code) {
        try {
            return Integer.parseInt(code);
        } catch (NumberFormatException problem) {
            return 0;
        }
    }

    public static void main(String[] words) {
        String[] codes = {"12", "A7", "B19", "311", "XL", "C4", "n/a", "D22", "70", "S"};
        System.out.println("sum " + add(codes, 300));
    }
}
