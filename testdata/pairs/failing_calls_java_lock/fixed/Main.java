import java.io.File;

/** Adds up the digits of 60,000 numbers, and pauses as long as somebody has put up the sign for maintenance. */
public class Main {
    public static void main(String[] words) throws InterruptedException {
        File maintenance = new File(words[0]);
        long sum = 0;
        for (int n = 0; n < 60_000; n++) {
            while (n % 1000 == 0 && maintenance.exists()) {
                Thread.sleep(1000);
            }
            for (int left = n; left > 0; left /= 10) {
                sum += left % 10;
            }
        }
        System.out.println("sum " + sum);
    }
}
